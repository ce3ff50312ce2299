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

// vouchedWithin is how old the word of a provider may be on which a new session in an account of its
// people rests: as at a refresh.
const vouchedWithin = 10 * time.Second

// vouched asks the provider at which an account began, whether its person may still come in. It ends the
// session that was begun when not: what the provider withdraws, no other way in gives back (AS-218).
func (e *Entry) vouched(ctx context.Context, u storage.User, session storage.Hash) error {
	v, err := e.Browsers.Visit(ctx, session, storage.VisitKey{})
	switch {
	case err != nil:
		return err
	case v == nil: // nothing here knows its provider any more
		err = storage.ErrRevoked
	default:
		err = e.Browsers.Bindings.Check(ctx, v.Session.UpstreamID, vouchedWithin)
	}
	if err == nil {
		return nil
	}
	if end := e.Store.EndSession(ctx, session, e.Now()); end != nil {
		return refusal.Unavailable(end)
	}
	return e.away(ctx, u, err)
}

// away is the error of a sign-in that has no session at a provider to rest on, where it needs one.
func (e *Entry) away(ctx context.Context, u storage.User, err error) error {
	if err = away(err); errors.Is(err, delegation.ErrAway) {
		e.Audit.Record(ctx, audit.LoginFailed, audit.Person(u.ID, u.Name), slog.String("reason", "not at the provider"))
	}
	return err
}

func away(err error) error {
	if errors.Is(err, storage.ErrAway) || errors.Is(err, storage.ErrRevoked) {
		return delegation.ErrAway
	}
	return refusal.Protocol(err)
}
