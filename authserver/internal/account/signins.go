package account

import (
	"context"
	"errors"
	"log/slog"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/storage"
)

// EndSignIn ends one session of the person, named by its id.
func (a *Page) EndSignIn(ctx context.Context, p Person, id string) (Outcome, error) {
	v, err := a.check(ctx, p)
	if err != nil {
		return "", err
	}
	u := v.User
	switch err := a.Store.EndSignIn(ctx, id, a.endBy(v)); {
	case errors.Is(err, storage.ErrNotFound): // another person's, too (PE-08)
		return Gone, nil
	case err != nil:
		return "", unended(err)
	}
	a.Audit.Record(ctx, audit.LoggedOut, audit.Person(u.ID, u.Name), slog.String("session", id))
	return Ended, nil
}

// EndOthers ends every session of the person but the one in use.
func (a *Page) EndOthers(ctx context.Context, p Person) (Outcome, error) {
	v, err := a.check(ctx, p)
	if err != nil {
		return "", err
	}
	u := v.User
	n, err := a.Store.EndOtherSignIns(ctx, p.Token, a.endBy(v))
	if err != nil {
		return "", unended(err)
	}
	if n > 0 {
		a.Audit.Record(ctx, audit.LoggedOut, audit.Person(u.ID, u.Name), slog.Int("sessions", n))
	}
	return OthersEnded, nil
}

// endBy says which sessions a session may end. One without a proof of the last minutes ends none that
// has such a proof: a thief of a cookie could otherwise sign the person out after each sign-in
// (PE-04).
func (a *Page) endBy(v storage.Visit) storage.SessionEnding {
	end := storage.SessionEnding{UserID: v.User.ID, Now: a.Now()}
	if !entry.Fresh(v.Session, end.Now) {
		end.ProvedBefore = end.Now.Add(-entry.FreshFor)
	}
	return end
}

func unended(err error) error {
	if errors.Is(err, storage.ErrProved) {
		return entry.ErrProve
	}
	return refusal.Unavailable(err)
}

// StopEverything ends every session and every grant of the person, all at once (PE-10).
func (a *Page) StopEverything(ctx context.Context, p Person) error {
	v, err := a.check(ctx, p)
	if err != nil {
		return err
	}
	u := v.User
	if err := a.Store.StopEverything(ctx, u.ID, a.Now()); err != nil {
		return refusal.Unavailable(err)
	}
	a.Audit.Record(ctx, audit.EverythingStopped, audit.Person(u.ID, u.Name))
	return nil
}
