package admin

import (
	"context"
	"slices"

	"github.com/mcp-authd/mcp-authd/internal/auditsink"
)

func (s *Service) auditSinks(ctx context.Context, _ None) (Page[AuditSink], error) {
	configured := s.Config.AuditSinks()
	states, err := auditsink.States(ctx, s.Store, configured)
	out := Page[AuditSink]{Items: make([]AuditSink, 0, len(configured))}
	for _, c := range configured {
		v := AuditSink{ID: c.ID, Kind: string(c.Kind), Format: string(c.Format)}
		if i := slices.IndexFunc(states, func(k auditsink.State) bool { return k.ID == c.ID }); i >= 0 {
			k := states[i]
			v.Opened, v.Waiting, v.Oldest, v.Lost, v.Failed = true, k.Waiting, k.Oldest, k.Lost, k.Failed
		}
		out.Items = append(out.Items, v)
	}
	return out, err
}
