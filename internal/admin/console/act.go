package console

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const purposeAct = "act"

// actState is the hidden state of the form of an operation: the user, the operation and its object.
// Its nonce stays the same while the form is shown again without a change.
type actState struct {
	UserID  string     `json:"u"`
	Name    string     `json:"n"`
	Subject url.Values `json:"s"`
	Account string     `json:"a,omitempty"` // the ID of the account that was shown
	Called  string     `json:"c,omitempty"` // the name of the object, as shown
	Nonce   string     `json:"o"`
	Shown   url.Values `json:"f,omitempty"` // fields that the page shows but the user does not fill in
}

// given returns the object as input of the operation. An account is given by ID, because another
// account may have its name by the time the form is sent.
func (s actState) given() url.Values {
	out := maps.Clone(s.Subject)
	maps.Copy(out, s.Shown)
	if s.Account != "" {
		out.Set("name", s.Account)
	}
	return out
}

// stateOf returns the hidden state of the form for an operation on an object.
func (v *view) stateOf(verb admin.Verb, subject url.Values) (actState, error) {
	s := verb.Spec()
	name, n := subject.Get("name"), nounOf(s.Name)
	state := actState{
		UserID: v.visit.User.ID, Name: s.Name, Subject: subject, Nonce: secrets.Token(""), Called: v.called(n, subject),
	}
	if n.name != people.name || name == "" || slices.Contains(n.begins, s.Name) {
		return state, nil
	}
	u, err := admin.UserShow.Do(v.r.Context(), v.as, admin.UserName{Name: name})
	if errors.Is(err, admin.ErrNotFound) && slices.Contains(n.early, s.Name) {
		return state, nil
	}
	state.Account = u.ID
	return state, err
}

// ask shows the form of an operation that changes something. If the operation requires a recent
// authentication, that comes first, so that no input is lost. The address selects the object and
// fills in nothing else: a link from somebody else must not choose a role.
func (v *view) ask(verb admin.Verb) {
	if err := v.permit(verb, subjectOf(verb, v.r.URL.Query())); err != nil {
		v.failed(err)
		return
	}
	if verb.Spec().Fresh && !v.fresh() {
		v.visitors.Prove(v.w, v.r, v.here)
		return
	}
	state, err := v.stateOf(verb, subjectOf(verb, v.r.URL.Query()))
	if err != nil {
		v.failed(err)
		return
	}
	if kept, ok := v.kept(state); ok {
		v.form(http.StatusOK, verb, kept.actState, kept.Given, "")
		return
	}
	given := state.given()
	if m := verb.Spec().Method; m == http.MethodPut || m == http.MethodPatch {
		v.asIs(verb, state.given(), given)
	}
	v.form(http.StatusOK, verb, state, given, "")
}

// asIs fills a form with the current values of an object.
func (v *view) asIs(verb admin.Verb, subject, given url.Values) {
	one, ok := v.verbs[verb.Spec().Noun()+" show"]
	if !ok || len(subject) == 0 || missing(one, subject) {
		return
	}
	in, err := input(one, subject)
	if err != nil {
		return
	}
	out, err := v.call(one, in)
	if err != nil {
		return // the operation reports the error
	}
	for _, m := range members(out) {
		if given.Has(m.name) || m.value.IsZero() {
			continue
		}
		if rowable(m.value.Type()) {
			giveRows(m.value, m.name, given)
			continue
		}
		if list, ok := m.value.Interface().([]string); ok {
			given.Set(m.name, strings.Join(list, "\n"))
			continue
		}
		given.Set(m.name, editable(m.value))
	}
}

// form shows the form of an operation, with the problem if the operation failed.
func (v *view) form(status int, verb admin.Verb, state actState, given url.Values, problem string) {
	s, subject := verb.Spec(), state.Subject
	n := nounOf(s.Name)
	if s.Name == admin.ResourceAccept.Spec().Name {
		v.acceptance(status, verb, state, problem)
		return
	}
	if s.Name == admin.ApplicationMerge.Spec().Name && state.Shown.Has("into") {
		v.confirmMerge(status, verb, state, problem)
		return
	}
	step, err := v.visitors.Seal(v.w, v.r, purposeAct, state)
	if err != nil {
		v.visitors.Fail(v.w, v.r, err)
		return
	}
	f := pages.ConsoleForm{
		Lead: about(wordingOf(s.Name).lead, state.Called), Goes: v.goes(s.Name, state.given()),
		Action: v.url(s.Name, subject), Step: step, Fields: fields(verb, given, subject), Button: actName(s.Name),
		Grave: s.Takes, BackURL: v.back(n, s, subject),
	}
	v.page(status, n.name, pages.Console{
		Title: titleOf(s.Name, state.Called), Trail: v.trail(n, subject), Problem: problem,
		Parts: []pages.ConsolePart{f},
	})
}

// back returns the page where an operation started.
func (v *view) back(n noun, s admin.Spec, subject url.Values) string {
	if slices.Contains(n.early, s.Name) { // the account may not exist yet, but the list of its links does
		return v.url(s.Name[:strings.LastIndex(s.Name, " ")], nil)
	}
	if list := n.backs[s.Name]; list != "" && v.may(list) {
		return v.url(list, subjectOf(v.verbs[list], subject))
	}
	if one := n.name + " show"; len(subject) > 0 && one != s.Name && v.may(one) {
		of := subjectOf(v.verbs[one], subject)
		if covers(of, subjects(v.verbs[one])) {
			return v.url(one, of)
		}
	}
	if v.may(n.begin()) {
		return v.url(n.begin(), nil)
	}
	return v.visitors.Path(Root)
}

// act runs an operation for the user and object that its form was made for. An operation that
// changes something runs once.
func (v *view) act(verb admin.Verb) {
	var state actState
	posted, ok := v.visitors.Open(v.w, v.r, purposeAct, &state)
	if !ok {
		return
	}
	s := verb.Spec()
	if state.UserID != v.visit.User.ID || state.Name != s.Name {
		v.visitors.Fail(v.w, v.r, errOther)
		return
	}
	maps.Copy(posted, state.given())
	in, err := input(verb, posted)
	if err != nil {
		v.form(http.StatusBadRequest, verb, state, posted, err.Error())
		return
	}
	if s.Name == admin.ApplicationMerge.Spec().Name && !state.Shown.Has("into") {
		v.chosen(verb, state, posted)
		return
	}
	if !s.Changes() {
		out, err := v.call(verb, in)
		v.came(verb, state, posted, out, err)
		return
	}
	key, first := v.begin(verb, state)
	if !first {
		return
	}
	// The browser may have closed the connection, as it does after a double click.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.r.Context()), runsFor)
	defer cancel()
	v.r = v.r.WithContext(ctx)
	out, err := v.call(verb, in)
	v.settle(key, v.outcome(verb, out, state, err), err)
	v.came(verb, state, posted, out, err)
}

// came shows the result of an operation. If it was refused, it shows the form again as it was
// filled in.
func (v *view) came(verb admin.Verb, state actState, posted url.Values, out reflect.Value, err error) {
	status, told := statusOf(err)
	switch {
	case errors.As(err, new(*admin.StaleError)):
		v.keep(verb, state, posted)
	case err == nil:
		v.did(verb, out, state)
	case told && untouched(err) && status != http.StatusForbidden && status != http.StatusNotFound:
		v.later(status)
		v.form(status, verb, state, posted, err.Error())
	default:
		v.failed(err)
	}
}

var errOther = sentence.NewError(oauth.AccessDenied,
	"Another person is signed in in this browser, or you have been signed out. Sign in and start again.", "another_person")

// did shows a successful result. It redirects, so that reloading the page does not repeat the
// operation. If the result contains a secret, which is shown once, it writes the page directly.
func (v *view) did(verb admin.Verb, out reflect.Value, state actState) {
	s, subject := verb.Spec(), state.Subject
	n := nounOf(s.Name)
	if !s.Changes() {
		p := pages.Console{Title: titleOf(s.Name, state.Called), Trail: v.trail(n, subject)}
		if !v.screen(out.Interface(), &p) {
			p.Parts = v.parts(n, members(out), nil)
		}
		v.page(http.StatusOK, n.name, p)
		return
	}
	if s.Secret {
		v.page(http.StatusOK, n.name, pages.Console{
			Title: titleOf(s.Name, state.Called), Trail: v.trail(n, subject), Parts: v.once(n, members(out)),
		})
		return
	}
	sealed, err := v.visitors.Seal(v.w, v.r, purposeDone, doneState{doneText(s, state.Called)})
	if err != nil {
		v.visitors.Fail(v.w, v.r, err)
		return
	}
	to, sep := v.leads(s, out, subject), "?"
	if strings.Contains(to, "?") {
		sep = "&"
	}
	http.Redirect(v.w, v.r, to+sep+"done="+url.QueryEscape(sealed), http.StatusSeeOther)
}

// leads returns the page to show after a successful operation.
func (v *view) leads(s admin.Spec, out reflect.Value, subject url.Values) string {
	n := nounOf(s.Name)
	if one := n.name + " show"; len(subject) == 0 && v.may(one) {
		if made := v.oneURL(n, members(out)); made != "" {
			return made
		}
	}
	if one, ok := v.verbs[n.name+" show"]; ok && s.Method == http.MethodDelete && s.Path == one.Spec().Path {
		return v.url(n.begin(), nil) // the object is gone
	}
	return v.back(n, s, subject)
}

// doneText returns the text that confirms an operation on the named object.
func doneText(s admin.Spec, called string) string {
	return cmp.Or(about(wordingOf(s.Name).done, called), "Done.")
}

// once returns the fields of an output that contains a secret, with the secrets first.
func (v *view) once(n noun, all []member) []pages.ConsolePart {
	var others []pages.ConsolePart
	secret := secretPart()
	var rest []member
	for _, m := range all {
		if inner := unwrapped(m.value); m.value.Kind() == reflect.Interface && isGroup(inner) {
			others = append(others, v.once(n, members(inner))...) // of an operation that runs another one
			continue
		}
		if m.secret && m.value.Kind() == reflect.String && m.value.String() != "" {
			secret.Secrets = append(secret.Secrets, pages.ConsoleFact{
				Name: caption(m.name), Value: pages.ConsoleCell{Text: m.value.String()},
			})
			continue
		}
		rest = append(rest, m)
	}
	parts := append(others, v.parts(noun{name: n.name}, rest, nil)...)
	if len(secret.Secrets) > 0 {
		parts = append([]pages.ConsolePart{secret}, parts...)
	}
	return parts
}

func secretPart() pages.ConsoleSecret {
	return pages.ConsoleSecret{
		Title: "Copy this now", Text: "It is shown this once, and cannot be shown again later.",
	}
}
