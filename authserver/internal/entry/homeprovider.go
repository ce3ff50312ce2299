package entry

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/delegation"
	"github.com/mcp-authd/mcp-authd/storage"
)

// homeAnswerWithin is the greatest age of the home provider's answer on which a new session may rest. A
// refresh has the same limit.
const homeAnswerWithin = 10 * time.Second

// askHomeProvider asks the provider at which an account began whether its person may still sign in. If the
// provider says no, it ends the session that has just begun, by whichever way the person signed in (AS-218).
func (s *SignIns) askHomeProvider(ctx context.Context, u storage.User, session storage.Hash) error {
	v, err := s.Browsers.Visit(ctx, session, storage.VisitKey{})
	switch {
	case err != nil:
		return err
	case v == nil: // the session was ended meanwhile, or no provider is configured any more
		err = storage.ErrRevoked
	default:
		err = s.Browsers.Bindings.Check(ctx, v.Session.UpstreamID, homeAnswerWithin)
	}
	if err == nil {
		return nil
	}
	if end := s.Store.EndSession(ctx, session, s.Now()); end != nil {
		return refusal.Unavailable(end)
	}
	return s.recordHomeError(ctx, u, err)
}

// recordHomeError is homeError, and records the refusal.
func (s *SignIns) recordHomeError(ctx context.Context, u storage.User, err error) error {
	if err = homeError(err); errors.Is(err, delegation.ErrHomeProvider) {
		s.Audit.Record(ctx, audit.LoginFailed, audit.Person(u.ID, u.Name), slog.String("reason", "not at the provider"))
	}
	return err
}

// homeError returns the error for a person whose account began at a provider and who has no live session
// there.
func homeError(err error) error {
	if errors.Is(err, storage.ErrHomeProvider) || errors.Is(err, storage.ErrRevoked) {
		return delegation.ErrHomeProvider
	}
	return refusal.Protocol(err)
}
