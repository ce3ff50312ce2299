package admin

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
)

// keptWithin is how long an answer waits for its entries in the audit log.
const keptWithin = 5 * time.Second

// kept carries a change out, and returns when what it has recorded is in the audit log (OB-06). While the
// log takes nothing, nothing is begun: [ErrUnavailable]. Afterwards it can only be said: [ErrUnkept]. Why
// the log takes nothing is in the log of the server.
func (s *Service) kept(ctx context.Context, do func(context.Context) error) error {
	if !s.AuditRequired {
		return do(ctx)
	}
	if s.Audit.Ready() != nil {
		return fault(ErrUnavailable, "nothing was done, because the audit log takes no entries; try again later")
	}
	recorded, pending := audit.Awaited(ctx)
	err := do(recorded)
	// The caller may have gone; what was done was done.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keptWithin)
	defer cancel()
	if pending.Wait(ctx) != nil {
		return ErrUnkept
	}
	return err
}
