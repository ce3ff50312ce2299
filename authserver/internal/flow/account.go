package flow

import (
	"context"
	"errors"

	"github.com/mcp-authd/mcp-authd/authserver/internal/catalogue"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Accounts is what people see and do on the start page.
type Accounts struct {
	Browsers   *Browsers
	Catalog    *catalogue.Catalogue
	Identities Identities // nil: accounts at providers are not shown
	Notices    *notice.Teller
}

// Identities are the accounts at providers that are tied to a user. Its contract is that of
// authserver.Accounts.
type Identities interface {
	Identities(ctx context.Context, userID string) ([]storage.Identity, error)
	Disconnect(ctx context.Context, userID, connector, subject string) error
}

// Home is what the start page shows.
type Home struct {
	Visit      *storage.Visit // nil: no person is signed in
	Resources  []storage.Resource
	Identities []storage.Identity
	EndNotice  string
}

// Home reads what the start page shows to the person whose a browser is.
func (a *Accounts) Home(ctx context.Context, token storage.Hash) (h Home, err error) {
	if h.Visit, err = a.Browsers.Visit(ctx, token, storage.VisitKey{}); err != nil {
		return h, err
	}
	catalog, err := a.Catalog.Load(ctx)
	if err != nil {
		return h, refusal.Unavailable(err)
	}
	h.Resources = catalog.Resources()
	switch {
	case h.Visit == nil:
		h.EndNotice = a.Browsers.endNotice(ctx, token)
	case a.Identities != nil:
		h.Identities, err = a.Identities.Identities(ctx, h.Visit.User.ID)
	}
	return h, refusal.Protocol(err)
}

// DisconnectForm is what the form that unties an account carries along, sealed and bound
// to the browser.
type DisconnectForm struct {
	UserID    string `json:"u"`
	Connector string `json:"c"`
	Subject   string `json:"s"`
}

// Disconnect unties an account at a provider. ErrProve when the person's last proof is too old;
// storage.ErrLast for the only way in (PE-03).
func (a *Accounts) Disconnect(ctx context.Context, d DisconnectForm, token storage.Hash) error {
	if _, err := a.Browsers.Owner(ctx, token, d.UserID); err != nil {
		return err
	}
	err := a.Identities.Disconnect(ctx, d.UserID, d.Connector, d.Subject)
	switch {
	case err == nil:
		a.Notices.Tell(ctx, d.UserID, notice.Change{Kind: notice.AccountDisconnected, Detail: d.Connector})
	case errors.Is(err, storage.ErrNotFound):
		return nil // it is what the person wants
	case errors.Is(err, storage.ErrLast):
		return err
	}
	return refusal.Protocol(err)
}
