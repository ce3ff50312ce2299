package account

import (
	"context"
	"errors"
	"log/slog"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/flow"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/storage"
)

// EndSignIn ends one session of the person, named by its id.
func (d *Desk) EndSignIn(ctx context.Context, p Person, id string) (Outcome, error) {
	u, err := d.check(ctx, p)
	if err != nil {
		return "", err
	}
	switch err := d.Store.EndSignIn(ctx, u.ID, id, d.Now()); {
	case errors.Is(err, storage.ErrNotFound): // another person's, too (PE-08)
		return Gone, nil
	case err != nil:
		return "", refusal.Unavailable(err)
	}
	d.Audit.Record(ctx, audit.LoggedOut, audit.Person(u.ID, u.Name), slog.String("session", id))
	return Ended, nil
}

// EndOthers ends every session of the person but the one in use.
func (d *Desk) EndOthers(ctx context.Context, p Person) (Outcome, error) {
	u, err := d.check(ctx, p)
	if err != nil {
		return "", err
	}
	n, err := d.Store.EndOtherSignIns(ctx, u.ID, p.Token, d.Now())
	if err != nil {
		return "", refusal.Unavailable(err)
	}
	if n > 0 {
		d.Audit.Record(ctx, audit.LoggedOut, audit.Person(u.ID, u.Name), slog.Int("sessions", n))
	}
	return OthersEnded, nil
}

// StopEverything ends every session and every grant of the person, all at once (PE-10).
func (d *Desk) StopEverything(ctx context.Context, p Person) error {
	u, err := d.check(ctx, p)
	if err != nil {
		return err
	}
	if err := flow.NoteStop(ctx, d.Store, u.ID, d.Now()); err != nil {
		return refusal.Unavailable(err)
	}
	if err := d.Store.StopEverything(ctx, u.ID, d.Now()); err != nil {
		return refusal.Unavailable(err)
	}
	d.Audit.Record(ctx, audit.EverythingStopped, audit.Person(u.ID, u.Name))
	return nil
}
