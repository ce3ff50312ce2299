package console

import (
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

const purposeKept = "kept"

// maxKept limits how much of a form is kept in the address of its page, in bytes.
const maxKept = 2500

// keptState is a filled-in form whose user has to authenticate again.
type keptState struct {
	actState
	Given url.Values `json:"g"`
}

// keep sends a user to authenticate again and then back to the filled-in form. The operation runs
// only when they send the form again. Secrets are not kept, because they would be in an address.
func (v *view) keep(verb admin.Verb, state actState, posted url.Values) {
	given, fields := url.Values{}, members(reflect.New(verb.Input()).Elem())
	for k, values := range posted {
		if m, ok := memberOf(fields, k); ok && !m.secret && !state.Subject.Has(k) {
			given[k] = values
		}
	}
	sealed, err := v.visitors.Seal(v.w, v.r, purposeKept, keptState{state, given})
	if err != nil || len(sealed) > maxKept {
		v.form(http.StatusForbidden, verb, state, posted, "Prove again who you are: open another page of this console in "+
			"a second window, do so there, and send this form again. It is too long to be kept on the way.")
		return
	}
	query := url.Values{"kept": {sealed}}
	maps.Copy(query, state.Subject)
	v.visitors.Prove(v.w, v.r, Root+"/"+strings.ReplaceAll(state.Name, " ", "/")+"?"+query.Encode())
}

// kept returns the form that a user had filled in before authenticating again. It must be for the
// same operation, object and account as the requested one.
func (v *view) kept(now actState) (kept keptState, ok bool) {
	sealed := v.r.URL.Query().Get("kept")
	if sealed == "" || !v.visitors.Unseal(v.w, v.r, purposeKept, sealed, &kept) {
		return kept, false
	}
	return kept, kept.UserID == now.UserID && kept.Name == now.Name && kept.Account == now.Account &&
		subjectText(kept.Subject) == subjectText(now.Subject)
}
