package authserver

import (
	"net/http"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/flow"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// homePages serves the start page.
type homePages struct {
	start *flow.StartPage
	forms *pageForms
	steps *steps
}

// home serves the start page.
func (p *homePages) home(w http.ResponseWriter, r *http.Request) {
	h, err := p.start.Home(r.Context(), p.forms.token(r))
	if err != nil {
		p.forms.errors.show(w, r, http.StatusServiceUnavailable, err)
		return
	}
	views := p.steps.views
	v := pages.Home{
		Issuer: views.issuer, SignOutAction: views.paths.logout, EndNotice: pages.Told(h.EndNotice),
	}
	for _, res := range h.Resources {
		v.Resources = append(v.Resources, resourceParty(res))
	}
	if h.Visit == nil {
		err = p.addSignIn(w, r, &v)
	} else {
		err = p.addAccount(w, r, &v, h.Visit.User)
	}
	if err != nil {
		p.forms.errors.show(w, r, http.StatusInternalServerError, err)
		return
	}
	p.steps.web.For(r).Home(w, v)
}

// addSignIn adds the sign-in options.
func (p *homePages) addSignIn(w http.ResponseWriter, r *http.Request, v *pages.Home) (err error) {
	if p.steps.passwords.offered(r.Context()) {
		v.SignInURL = p.steps.views.paths.login
	}
	v.SignIn, err = p.steps.choices(w, r, entry.Destination{})
	return err
}

// addAccount adds the signed-in user.
func (p *homePages) addAccount(w http.ResponseWriter, r *http.Request, v *pages.Home, u storage.User) (err error) {
	v.Username, v.AccountURL = u.Name, p.steps.views.paths.account
	v.Step, err = p.forms.signOut(w, r, u, entry.Destination{})
	return err
}
