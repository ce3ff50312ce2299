package authserver

import (
	"encoding/base64"
	"net/http"

	"github.com/mcp-authd/mcp-authd/authserver/internal/account"
	"github.com/mcp-authd/mcp-authd/authserver/internal/flow"
	"github.com/mcp-authd/mcp-authd/delegation"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/web"
)

// accounts are the accounts at providers that let a person in, and the providers at which they can
// connect another one. The only way in has no form (PE-03), nor has that with which the account began;
// only: one of them is the only way in.
func (p *wayPages) accounts(
	w http.ResponseWriter, r *http.Request, u storage.User, all []storage.Identity, only bool,
) (accounts []web.Account, connect []web.Choice, err error) {
	connected := map[string]bool{}
	for _, id := range all {
		connected[id.Connector] = true
		a := p.steps.views.account(id)
		last := only && !a.Gone
		a.Began = id.Began && !last
		if !last && !id.Began {
			form := account.DisconnectForm{UserID: u.ID, Connector: id.Connector, Subject: id.Subject}
			if a.Step, err = p.forms.seal(w, r, purposeDisconnect, form); err != nil {
				return nil, nil, err
			}
		}
		accounts = append(accounts, a)
	}
	for _, provider := range p.steps.views.flow.Options.Providers() {
		if connected[provider.ID] {
			continue
		}
		c, err := p.steps.choice(w, r, provider, flow.ProviderForm{Purpose: delegation.PurposeLink, UserID: u.ID})
		if err != nil {
			return nil, nil, err
		}
		connect = append(connect, c)
	}
	return accounts, connect, nil
}

func (v *views) account(id storage.Identity) web.Account {
	provider, ok := v.flow.Options.Provider(id.Connector)
	if !ok { // taken out of the configuration
		provider = delegation.Provider{Name: id.Connector}
	}
	return web.Account{
		ID: accountID(id), Provider: providerView(provider), Label: id.Label, Gone: !ok, Action: v.paths.disconnect,
	}
}

// accountID names an account on the page, without what the provider calls the person.
func accountID(id storage.Identity) string {
	h := secrets.Hash(id.Connector + "\x00" + id.Subject)
	return "acc_" + base64.RawURLEncoding.EncodeToString(h[:9])
}
