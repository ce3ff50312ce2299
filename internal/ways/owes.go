package ways

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Owes is like Needs for an existing session. A passkey or an app that the user has enrolled since
// then counts only from the next sign-in on, unless a second factor is required.
func (w *Ways) Owes(ctx context.Context, u storage.User, methods []string) (Need, error) {
	p, most := w.cfg.Policy, storage.Factors{AdminEnrolled: true}
	if p.of(u, most) != Required || !p.needs(u, most, methods).Missing {
		return Need{}, nil
	}
	f, err := w.Factors(ctx, u.ID)
	if err != nil || p.of(u, f) != Required {
		return Need{}, err
	}
	return p.needs(u, f, methods), nil
}
