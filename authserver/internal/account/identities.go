package account

import (
	"context"
	"errors"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Identities lists and unlinks users' accounts at providers. authserver.Accounts documents the
// contract.
type Identities interface {
	Identities(ctx context.Context, userID string) ([]storage.Identity, error)
	Disconnect(ctx context.Context, userID, connector, subject string, in storage.Hash) error
}

// DisconnectForm is the content of the form that unlinks an account, sealed and bound to the
// browser.
type DisconnectForm struct {
	UserID    string `json:"u"`
	Connector string `json:"c"`
	Subject   string `json:"s"`
}

// DisconnectIdentity unlinks an account at a provider. It returns the error of entry.Browsers.Owed
// if the session needs more authentication. It returns storage.ErrLast for the only authentication
// method, and for the provider account that created the account (PE-03).
func (a *Page) DisconnectIdentity(ctx context.Context, d DisconnectForm, token storage.Hash) error {
	v, err := a.Browsers.ActingAs(ctx, token, d.UserID, entry.Change)
	if err != nil {
		return err
	}
	err = a.Identities.Disconnect(ctx, d.UserID, d.Connector, d.Subject, v.Session.Hash)
	switch {
	case err == nil:
		a.Notices.Tell(ctx, d.UserID, notice.Change{Kind: notice.AccountDisconnected, Detail: d.Connector})
	case errors.Is(err, storage.ErrNotFound):
		return nil // already unlinked
	case errors.Is(err, storage.ErrSignedOut):
		return entry.ErrAnotherPerson
	case errors.Is(err, storage.ErrLast):
		return err
	}
	return refusal.Protocol(err)
}
