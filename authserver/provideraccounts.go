package authserver

import (
	"encoding/base64"
	"net/http"

	"github.com/mcp-authd/mcp-authd/authserver/internal/account"
	"github.com/mcp-authd/mcp-authd/authserver/internal/flow"
	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// accounts returns the user's accounts at providers, and the providers where they can connect
// another one. The only authentication method cannot be removed (PE-03), nor can the account that
// created the user's account. only reports that one of the accounts is the only method.
func (p *wayPages) accounts(
	w http.ResponseWriter, r *http.Request, u storage.User, all []storage.Identity, only bool,
) (accounts []pages.Account, connect []pages.Choice, err error) {
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

func (v *views) account(id storage.Identity) pages.Account {
	provider, ok := v.flow.Options.Provider(id.Connector)
	if !ok { // removed from the configuration
		provider = delegation.Provider{Name: id.Connector}
	}
	return pages.Account{
		ID: accountID(id), Provider: providerView(provider), Label: id.Label, Gone: !ok, Action: v.paths.disconnect,
	}
}

// accountID returns an id for an account on the page, without the provider's subject.
func accountID(id storage.Identity) string {
	h := secrets.Hash(id.Connector + "\x00" + id.Subject)
	return "acc_" + base64.RawURLEncoding.EncodeToString(h[:9])
}
