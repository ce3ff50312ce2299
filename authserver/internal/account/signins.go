package account

import (
	"context"
	"errors"
	"log/slog"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// EndSignIn ends the user's session with an id.
func (a *Page) EndSignIn(ctx context.Context, p Person, id string) (Outcome, error) {
	v, err := a.check(ctx, p)
	if err != nil {
		return "", err
	}
	u := v.User
	by, owed, err := a.endBy(ctx, v)
	if err != nil {
		return "", err
	}
	switch err := a.Store.EndSignIn(ctx, id, by); {
	case errors.Is(err, storage.ErrNotFound): // also another user's session (PE-08)
		return Gone, nil
	case err != nil:
		return "", unended(err, owed)
	}
	a.Audit.Record(ctx, audit.LoggedOut, audit.Person(u.ID, u.Name), slog.String("session", id))
	return Ended, nil
}

// EndOthers ends all sessions of the user except the current one.
func (a *Page) EndOthers(ctx context.Context, p Person) (Outcome, error) {
	v, err := a.check(ctx, p)
	if err != nil {
		return "", err
	}
	u := v.User
	by, owed, err := a.endBy(ctx, v)
	if err != nil {
		return "", err
	}
	n, err := a.Store.EndOtherSignIns(ctx, p.Token, by)
	if err != nil {
		return "", unended(err, owed)
	}
	if n > 0 {
		a.Audit.Record(ctx, audit.LoggedOut, audit.Person(u.ID, u.Name), slog.Int("sessions", n))
	}
	return OthersEnded, nil
}

// endBy returns the sessions that a session may end, and the error of entry.Browsers.Owed. A
// session that needs more authentication must not end recently authenticated ones: otherwise a
// thief of a cookie or a password could sign the user out after each sign-in (PE-04).
func (a *Page) endBy(ctx context.Context, v storage.Visit) (by storage.SessionEnding, owed, err error) {
	by = storage.SessionEnding{UserID: v.User.ID, Now: a.Now()}
	owed = a.Browsers.Owed(ctx, v, entry.Change)
	switch {
	case errors.Is(owed, entry.ErrMore), errors.Is(owed, entry.ErrProve):
		by.ProvedBefore = by.Now.Add(-entry.FreshFor)
		return by, owed, nil
	}
	return by, nil, owed
}

func unended(err, owed error) error {
	if errors.Is(err, storage.ErrProved) && owed != nil {
		return owed
	}
	return refusal.Unavailable(err)
}

// StopEverything ends every session and every grant of the user at once (PE-10).
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
