package flow

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/clients"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Passwords signs people in with a password.
type Passwords struct {
	Store    SessionStore
	Users    *users.Users
	Clients  *clients.Finder
	Browsers *Browsers
	Audit    *audit.Recorder
}

// SessionStore is what Passwords needs of the store.
type SessionStore interface {
	PutSession(ctx context.Context, s storage.Session, passwordHash string) error
	EndSession(ctx context.Context, h storage.Hash, now time.Time) error
}

// SignIn authenticates a person and stores the session that mint makes for them. It is always
// a new one, so that an id planted before the login is worth nothing. users.ErrWrong and
// *users.ThrottledError say why not.
func (p *Passwords) SignIn(
	ctx context.Context, a users.Attempt, to Destination, mint func(userID string) storage.Session,
) error {
	p.noteClient(ctx, to)
	u, err := p.Users.Authenticate(ctx, a)
	if err != nil {
		return err
	}
	switch err := p.Store.PutSession(ctx, mint(u.ID), u.PasswordHash); {
	case errors.Is(err, storage.ErrNotFound): // the password was changed in between
		return users.ErrWrong
	case err != nil:
		return refusal.Unavailable(err)
	}
	p.Users.SignedIn(ctx, u, a.Network, []string{"pwd"})
	return nil
}

// noteClient has the log say which application a person signs in for.
func (p *Passwords) noteClient(ctx context.Context, to Destination) {
	id := to.Query.Values().Get("client_id")
	if id == "" {
		return
	}
	audit.Note(ctx, slog.String("client_id", id))
	if c, err := p.Clients.Find(ctx, id); err == nil {
		audit.Note(ctx, audit.Client(c))
	}
}

// SignOut ends the session of a browser, whichever way it began.
func (p *Passwords) SignOut(ctx context.Context, token storage.Hash) error {
	v, err := p.Browsers.Visit(ctx, token, storage.VisitKey{})
	if err != nil {
		return err
	}
	if err := p.Store.EndSession(ctx, token, p.Browsers.Now()); err != nil {
		return refusal.Unavailable(err)
	}
	if v != nil {
		p.Audit.Record(ctx, audit.LoggedOut, audit.Person(v.User.ID, v.User.Name))
	}
	return nil
}
