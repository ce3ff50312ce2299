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

// AskHomeProvider asks the home provider of a person who signs in whether they may, by whichever way they come
// (AS-218). It is asked about upstream, the session there on which the new session is to rest, or "" for the
// one that the store will choose. That comes before anything is spent for the sign-in.
func (b *Browsers) AskHomeProvider(ctx context.Context, u storage.User, upstream string) error {
	if upstream == "" {
		var err error
		if upstream, err = b.Store.HomeSession(ctx, u.ID); err != nil {
			return b.homeError(ctx, u, err)
		}
	}
	if err := b.Bindings.Check(ctx, upstream, homeAnswerWithin); err != nil {
		return b.homeError(ctx, u, err)
	}
	return nil
}

// Confirm is AskHomeProvider for a session that has begun by a sign-in at some provider.
// It ends the session unless the home provider says yes: also when it cannot be asked.
func (b *Browsers) Confirm(ctx context.Context, u storage.User, session storage.Hash) error {
	err := b.AskHomeProvider(ctx, u, "")
	if err == nil {
		return nil
	}
	if end := b.Store.EndSession(ctx, session, b.Now()); end != nil {
		return refusal.Unavailable(end)
	}
	return err
}

// homeError returns the error for a person whose account began at a provider and who has no live session
// there, and records it.
func (b *Browsers) homeError(ctx context.Context, u storage.User, err error) error {
	if !errors.Is(err, storage.ErrHomeProvider) && !errors.Is(err, storage.ErrRevoked) {
		return refusal.Protocol(err)
	}
	audit.Note(ctx, audit.Person(u.ID, u.Name)) // for the attempt
	b.Audit.Record(ctx, audit.LoginFailed, audit.Person(u.ID, u.Name), slog.String("reason", "not at the provider"))
	return delegation.ErrHomeProvider
}
