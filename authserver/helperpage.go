package authserver

import (
	"errors"
	"net/http"

	"github.com/mcp-authd/mcp-authd/authserver/internal/account"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// pageHelpers is the page where users see and revoke the sub-agents of an application, below the
// path of the issuer. Its form is posted like the forms of connected applications.
const pageHelpers = "/account/helpers"

// helpers serves GET /account/helpers.
func (p *accountPages) helpers(w http.ResponseWriter, r *http.Request) {
	views := p.steps.views
	v, err := p.accounts.HelpersOf(r.Context(), p.forms.token(r), r.URL.Query().Get("grant"))
	switch {
	case errors.Is(err, storage.ErrNotFound):
		redirect(w, views.paths.account)
		return
	case err == nil && v == nil:
		redirect(w, views.paths.login)
		return
	}
	var step string
	if err == nil {
		step, err = p.forms.seal(w, r, purposeAccount, accountForm{UserID: v.Visit.User.ID})
	}
	if err != nil {
		p.forms.errors.show(w, r, pageStatus(oauth.AsError(err)), err)
		return
	}
	p.steps.web.For(r).Helpers(w, pages.Helpers{
		AccountForm: pages.AccountForm{Action: views.paths.connections, Step: step},
		Done:        p.said(w, r),
		GrantID:     v.ID,
		Client:      clientParty(v.Client),
		Server:      resourceParty(v.Resource),
		Helpers:     branches(v.Resource, v.Tree),
		BackURL:     views.paths.account,
	})
}

func branches(r storage.Resource, helpers []account.Helper) (out []pages.Helper) {
	for _, h := range helpers {
		out = append(out, pages.Helper{
			ID: h.ID, Name: h.Name, Scopes: grantedScopes(r, h.Scopes), Ends: h.ExpiresAt,
			Below: branches(r, h.Below),
		})
	}
	return out
}
