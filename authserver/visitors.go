package authserver

import (
	"net/http"
	"net/url"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// pageConsole is the path of the console below the issuer.
const pageConsole = "/admin"

// Visitors identifies the users of browsers for pages of another package below the issuer. It signs
// users in, authenticates them again and returns them to a page, and reads forms that are valid
// only in their browser. A page is a path below the issuer's, with its query.
type Visitors struct {
	browsers *entry.Browsers
	factors  entry.SecondFactors
	forms    *pageForms
	steps    *steps
}

// Pages returns the pages of this server.
func (v *Visitors) Pages() *pages.Pages { return v.steps.web.pages }

// Path returns the URL path of a page.
func (v *Visitors) Path(page string) string { return v.steps.views.paths.prefix + page }

// Visit returns the browser's signed-in user. Otherwise, or if a required second factor is missing,
// it returns false, after it has redirected the browser to sign in and come back to the page. On an
// error it sends an error page and returns false.
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

// Prove redirects the browser to the page for authenticating again, and then to a page.
func (v *Visitors) Prove(w http.ResponseWriter, r *http.Request, page string) {
	v.steps.lead(w, r, v.steps.views.paths.prove, entry.Destination{Page: page})
}

// Seal returns the field step of a form: a state, sealed for this browser and this purpose.
func (v *Visitors) Seal(w http.ResponseWriter, r *http.Request, purpose string, state any) (string, error) {
	return v.forms.seal(w, r, pageConsole+" "+purpose, state)
}

// Open reads a form and the state from Seal. If it returns false, it has sent a response.
func (v *Visitors) Open(w http.ResponseWriter, r *http.Request, purpose string, state any) (url.Values, bool) {
	return v.forms.open(w, r, pageConsole+" "+purpose, state)
}

// Unseal reads a state from Seal, and reports whether it could.
func (v *Visitors) Unseal(w http.ResponseWriter, r *http.Request, purpose, sealed string, state any) bool {
	return v.forms.unseal(w, r, pageConsole+" "+purpose, sealed, state) == nil
}

// SignOut returns the form that signs a user out.
func (v *Visitors) SignOut(w http.ResponseWriter, r *http.Request, u storage.User) (pages.AccountForm, error) {
	step, err := v.forms.signOut(w, r, u, entry.Destination{})
	return pages.AccountForm{Action: v.steps.views.paths.logout, Step: step}, err
}

// Fail shows the error page. It shows only the text of a protocol error; other errors are only
// logged.
func (v *Visitors) Fail(w http.ResponseWriter, r *http.Request, err error) {
	v.forms.errors.show(w, r, pageStatus(oauth.AsError(err)), err)
}
