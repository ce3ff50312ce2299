package authserver

import (
	"net/http"

	"github.com/mcp-authd/mcp-authd/authserver/internal/flow"
	"github.com/mcp-authd/mcp-authd/delegation"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/web"
)

// homePages are the start page and its forms.
type homePages struct {
	accounts    *flow.Accounts
	noPasswords bool // accounts with a password do not sign in
	prove       *provePages
	forms       *pageForms
	steps       *steps
}

// home serves the start page.
func (p *homePages) home(w http.ResponseWriter, r *http.Request) {
	h, err := p.accounts.Home(r.Context(), p.forms.token(r))
	if err != nil {
		p.forms.errors.show(w, r, http.StatusServiceUnavailable, err)
		return
	}
	views := p.steps.views
	v := web.Home{
		Issuer: views.issuer, SignOutAction: views.paths.logout, EndNotice: web.Told(h.EndNotice),
		FormTargets: views.providerTargets(),
	}
	for _, res := range h.Resources {
		v.Resources = append(v.Resources, resourceParty(res))
	}
	if h.Visit == nil {
		err = p.addSignIn(w, r, &v)
	} else {
		err = p.addAccount(w, r, &v, h)
	}
	if err != nil {
		p.forms.errors.show(w, r, http.StatusInternalServerError, err)
		return
	}
	p.steps.web.For(r).Home(w, v)
}

// addSignIn fills in how to sign in.
func (p *homePages) addSignIn(w http.ResponseWriter, r *http.Request, v *web.Home) (err error) {
	if p.steps.passwords.offered(r.Context()) {
		v.SignInURL = p.steps.views.paths.login
	}
	v.SignIn, err = p.steps.choices(w, r, flow.Destination{})
	return err
}

// addAccount fills in who is signed in, what is connected, and what else could be.
func (p *homePages) addAccount(w http.ResponseWriter, r *http.Request, v *web.Home, h flow.Home) error {
	you, err := p.you(w, r, h)
	v.Username, v.Accounts, v.Connect, v.Step = you.Username, you.Accounts, you.Connect, you.SignOut.Step
	v.AccountURL = p.steps.views.paths.account
	return err
}

// you is who is signed in, with the accounts at providers that are connected, or could be.
func (p *homePages) you(w http.ResponseWriter, r *http.Request, h flow.Home) (v web.AccountYou, err error) {
	v.Username, v.SignOut.Action = h.Visit.User.Name, p.steps.views.paths.logout
	v.SignOut.Step, err = p.forms.seal(w, r, purposeLogout, flow.Destination{})
	if err != nil || p.accounts.Identities == nil {
		return v, err
	}
	connected := map[string]bool{}
	only := len(h.Identities) == 1 && (h.Visit.User.PasswordHash == "" || p.noPasswords)
	for _, id := range h.Identities {
		connected[id.Connector] = true
		a := p.account(id)
		if !only {
			form := flow.DisconnectForm{UserID: h.Visit.User.ID, Connector: id.Connector, Subject: id.Subject}
			if a.Step, err = p.forms.seal(w, r, purposeDisconnect, form); err != nil {
				return v, err
			}
		}
		v.Accounts = append(v.Accounts, a)
	}
	for _, provider := range p.steps.views.flow.Ways.Providers() {
		if connected[provider.ID] {
			continue
		}
		c, err := p.steps.choice(w, r, provider,
			flow.ProviderForm{Purpose: delegation.PurposeLink, UserID: h.Visit.User.ID})
		if err != nil {
			return v, err
		}
		v.Connect = append(v.Connect, c)
	}
	return v, nil
}

func (p *homePages) account(id storage.Identity) web.Account {
	provider, ok := p.steps.views.flow.Ways.Provider(id.Connector)
	if !ok { // taken out of the configuration
		provider = delegation.Provider{Name: id.Connector}
	}
	return web.Account{Provider: providerView(provider), Label: id.Label, Action: p.steps.views.paths.disconnect}
}

// disconnect serves POST /disconnect.
func (p *homePages) disconnect(w http.ResponseWriter, r *http.Request) {
	var form flow.DisconnectForm
	if _, ok := p.forms.open(w, r, purposeDisconnect, &form); !ok {
		return
	}
	if p.accounts.Identities == nil {
		p.forms.errors.stale(w, r)
		return
	}
	if err := p.accounts.Disconnect(r.Context(), form, p.forms.token(r)); err != nil {
		p.prove.refused(w, r, "/", err)
		return
	}
	http.Redirect(w, r, p.steps.views.paths.home, http.StatusSeeOther)
}
