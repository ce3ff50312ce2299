package admin

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
)

// keptWithin is how long a response waits for its audit log entries.
const keptWithin = 5 * time.Second

// kept runs a change, and returns when its audit events are in the audit log (OB-06). It returns
// [ErrUnavailable] without starting if the log accepts no entries, and [ErrUnkept] if the log fails
// afterwards. The server log contains the cause.
func (s *Service) kept(ctx context.Context, do func(context.Context) error) error {
	if !s.AuditRequired {
		return do(ctx)
	}
	if s.Audit.Ready() != nil {
		return fault(ErrUnavailable, "nothing was done, because the audit log takes no entries; try again later")
	}
	recorded, pending := audit.Awaited(ctx)
	err := do(recorded)
	// The caller may be gone, but the change was made.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keptWithin)
	defer cancel()
	if pending.Wait(ctx) != nil {
		return ErrUnkept
	}
	return err
}
