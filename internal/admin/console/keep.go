package console

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

const purposeKept = "kept"

// maxKept bounds what is kept of a form in the address of its page, in bytes.
const maxKept = 2500

// keptState is what a person had filled in when the proof of who they are had become too old.
type keptState struct {
	actState
	Given url.Values `json:"g"`
}

// keep sends a person to prove again who they are, and then to the form as they left it: the act is
// not carried out before they send it a second time. Passwords are not kept, as they would stand in an
// address.
func (v *view) keep(verb admin.Verb, subject, posted url.Values) {
	given := url.Values{}
	for k, values := range posted {
		if k != "step" && !strings.Contains(k, "password") {
			given[k] = values
		}
	}
	name := verb.Spec().Name
	sealed, err := v.visitors.Seal(v.w, v.r, purposeKept, keptState{actState{v.visit.User.ID, name, subject}, given})
	if err != nil || len(sealed) > maxKept {
		v.form(http.StatusForbidden, verb, subject, posted, "Prove again who you are: open another page of this console in "+
			"a second window, do so there, and send this form again. It is too long to be kept on the way.")
		return
	}
	query := url.Values{"kept": {sealed}}
	for k, values := range subject {
		query[k] = values
	}
	v.visitors.Prove(v.w, v.r, Root+"/"+strings.ReplaceAll(name, " ", "/")+"?"+query.Encode())
}

// kept is what a person had filled in before they proved again who they are.
func (v *view) kept(verb admin.Verb) (url.Values, bool) {
	var kept keptState
	sealed := v.r.URL.Query().Get("kept")
	if sealed == "" || !v.visitors.Unseal(v.w, v.r, purposeKept, sealed, &kept) {
		return nil, false
	}
	return kept.Given, kept.UserID == v.visit.User.ID && kept.Name == verb.Spec().Name &&
		subjectText(kept.Subject) == subjectText(subjectOf(verb, v.r.URL.Query()))
}
