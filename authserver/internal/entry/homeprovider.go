package entry

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// homeAnswerWithin is the maximum age of the home provider's answer for a new session, the same as
// for a refresh.
const homeAnswerWithin = 10 * time.Second

// AskHomeProvider asks a user's home provider whether they may sign in, whatever method they use
// (AS-218). upstream is the provider session that the new session will depend on; "" means the one
// that the store chooses. It is asked before the sign-in uses anything up.
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

// Confirm is AskHomeProvider for a session that began at a provider. It ends the session unless the
// home provider agrees, and also if it cannot be asked.
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

// homeError returns, and records, the error for a user whose home provider has no live session for
// them.
func (b *Browsers) homeError(ctx context.Context, u storage.User, err error) error {
	if !errors.Is(err, storage.ErrHomeProvider) && !errors.Is(err, storage.ErrRevoked) {
		return refusal.Protocol(err)
	}
	request.Of(ctx).Note(audit.Person(u.ID, u.Name)) // for the sign-in record
	b.Audit.Record(ctx, audit.LoginFailed, audit.Person(u.ID, u.Name), slog.String("reason", "not at the provider"))
	return delegation.ErrHomeProvider
}
