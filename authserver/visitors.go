package authserver

import (
	"net/http"
	"net/url"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/web"
)

// pageConsole is where the console is, below the path of the issuer.
const pageConsole = "/admin"

// Visitors are the people at browsers, for pages that are made elsewhere and stand below the issuer: who
// it is, how they sign in or prove again who they are, and get back, and forms that are good in their
// browser alone. A page is a path below that of the issuer, with its query.
type Visitors struct {
	browsers *entry.Browsers
	factors  entry.SecondFactors
	forms    *pageForms
	steps    *steps
}

// Pages are the pages of this server.
func (v *Visitors) Pages() *web.Pages { return v.steps.web.pages }

// Path is a page of this server as browsers ask for it.
func (v *Visitors) Path(page string) string { return v.steps.views.paths.prefix + page }

// Visit returns the person who is signed in in the browser that asks for a page. When no person is, or
// a second factor is required of them that they have not shown, it has answered, by what leads there and
// then to the page.
func (v *Visitors) Visit(w http.ResponseWriter, r *http.Request, page string) (storage.Visit, bool) {
	token, to := v.forms.token(r), entry.Destination{Page: page}
	visit, err := v.browsers.LiveVisit(r.Context(), token, storage.VisitKey{})
	switch {
	case err != nil:
		v.Fail(w, r, err)
	case visit == nil:
		v.steps.writeEntry(w, r, entry.Login{To: to, EndNotice: v.browsers.EndNotice(r.Context(), token)})
	default:
		switch err := entry.Sufficient(r.Context(), v.factors, *visit); err {
		case nil:
			return *visit, true
		case entry.ErrMore:
			v.steps.stepUp(w, r, to)
		default:
			v.Fail(w, r, err)
		}
	}
	return storage.Visit{}, false
}

// Prove sends the browser to where its person proves again who they are, and then to a page.
func (v *Visitors) Prove(w http.ResponseWriter, r *http.Request, page string) {
	v.steps.lead(w, r, v.steps.views.paths.prove, entry.Destination{Page: page})
}

// Seal is what a form carries along as its field step: a state, for this browser and this purpose.
func (v *Visitors) Seal(w http.ResponseWriter, r *http.Request, purpose string, state any) (string, error) {
	return v.forms.seal(w, r, pageConsole+" "+purpose, state)
}

// Open reads a form and the state that Seal has put into it; when it cannot, it has answered.
func (v *Visitors) Open(w http.ResponseWriter, r *http.Request, purpose string, state any) (url.Values, bool) {
	return v.forms.open(w, r, pageConsole+" "+purpose, state)
}

// Unseal reads a state that Seal has made, and reports whether it could.
func (v *Visitors) Unseal(w http.ResponseWriter, r *http.Request, purpose, sealed string, state any) bool {
	return v.forms.unseal(w, r, pageConsole+" "+purpose, sealed, state) == nil
}

// SignOut is the form that signs a person out.
func (v *Visitors) SignOut(w http.ResponseWriter, r *http.Request, u storage.User) (web.AccountForm, error) {
	step, err := v.forms.signOut(w, r, u, entry.Destination{})
	return web.AccountForm{Action: v.steps.views.paths.logout, Step: step}, err
}

// Fail shows the error page. Of an error that is not of the protocol it says nothing; the log does.
func (v *Visitors) Fail(w http.ResponseWriter, r *http.Request, err error) {
	v.forms.errors.show(w, r, pageStatus(oauth.AsError(err)), err)
}
