package console

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// view is one request for a page.
type view struct {
	*Console
	w     http.ResponseWriter
	r     *http.Request
	here  string // the page, with its query
	visit storage.Visit
	role  admin.Role
	actor admin.Actor
	as    admin.Caller
	asked map[string]bool // cached results of allowed, by the page of the operation
}

// page shows a page, with the menu.
func (v *view) page(status int, noun string, p pages.Console) {
	p.HomeURL, p.AccountURL = v.visitors.Path(Root), v.visitors.Path("/account")
	p.Username, p.Role, p.Menu = v.visit.User.Name, string(v.role), v.menu(noun)
	p.Done, p.HereURL = v.done(), v.visitors.Path(v.here)
	var err error
	if p.SignOut, err = v.visitors.SignOut(v.w, v.r, v.visit.User); err != nil {
		v.visitors.Fail(v.w, v.r, err)
		return
	}
	v.visitors.Pages().Console(v.w, status, p)
}

// stop shows a page with only a message.
func (v *view) stop(status int, title, text string) {
	v.page(status, "", pages.Console{Title: title, Problem: text})
}

// menu returns the pages that the role may see.
func (v *view) menu(current string) (menu []pages.ConsoleGroup) {
	for _, n := range nouns {
		if n.menu == "" || !v.may(n.begin()) {
			continue
		}
		if len(menu) == 0 || menu[len(menu)-1].Name != n.menu {
			menu = append(menu, pages.ConsoleGroup{Name: n.menu})
		}
		group := &menu[len(menu)-1]
		group.Links = append(group.Links, pages.ConsoleLink{
			Name: n.title, URL: v.url(n.begin(), nil), Current: n.name == current,
		})
	}
	return menu
}

// may reports whether an operation exists and the role permits it.
func (v *view) may(name string) bool {
	verb, ok := v.verbs[name]
	return ok && verb.Spec().Permits(v.role)
}

// allowed reports whether the service would let the user run an operation on an object. Links and
// buttons for a change are shown only if it does. An operation that cannot be checked is left out.
func (v *view) allowed(name string, subject url.Values) bool {
	if !v.may(name) {
		return false
	}
	verb := v.verbs[name]
	if !verb.Spec().Changes() {
		return true
	}
	key := v.url(name, subject)
	if known, ok := v.asked[key]; ok {
		return known
	}
	err := v.permit(verb, subject)
	if v.asked == nil {
		v.asked = map[string]bool{}
	}
	v.asked[key] = err == nil
	return err == nil
}

// permit returns admin.ErrForbidden if the service would refuse the user an operation on an object.
// Other refusals are left to the operation, which explains them.
func (v *view) permit(verb admin.Verb, subject url.Values) error {
	in, err := input(verb, subject)
	if err != nil {
		return nil // the form reports the error
	}
	err = v.cfg.May(v.r.Context(), v.actor, verb, in.Interface())
	if errors.Is(err, admin.ErrNotFound) || errors.Is(err, admin.ErrConflict) || errors.Is(err, admin.ErrInvalid) {
		return nil
	}
	return err
}

// url returns the address of the page of an operation.
func (c *Console) url(name string, query url.Values) string {
	out := c.visitors.Path(Root + "/" + strings.ReplaceAll(name, " ", "/"))
	if len(query) > 0 {
		out += "?" + query.Encode()
	}
	return out
}

// fresh reports whether the user has authenticated recently.
func (v *view) fresh() bool {
	return v.cfg.Now().Sub(v.visit.Session.Proved()) <= v.cfg.FreshFor
}

// call runs an operation as the user of the page.
func (v *view) call(verb admin.Verb, in reflect.Value) (reflect.Value, error) {
	out := reflect.New(verb.Output())
	err := v.as.Call(v.r.Context(), verb, in.Interface(), out.Interface())
	return out.Elem(), err
}

// purposeDone seals the result of the last operation, which the address of the next page carries.
const purposeDone = "done"

type doneState struct {
	Text string `json:"t"`
}

// done returns the result of the last operation, or "".
func (v *view) done() string {
	var done doneState
	sealed := v.r.URL.Query().Get("done")
	if sealed == "" || !v.visitors.Unseal(v.w, v.r, purposeDone, sealed, &done) {
		return ""
	}
	return done.Text
}

// trail returns links to the parent pages.
func (v *view) trail(n noun, subject url.Values) (trail []pages.ConsoleLink) {
	if v.may(n.begin()) {
		trail = append(trail, pages.ConsoleLink{Name: n.title, URL: v.url(n.begin(), nil)})
	}
	if one := n.name + " show"; len(subject) > 0 && v.may(one) {
		if of := subjectOf(v.verbs[one], subject); len(of) > 0 {
			trail = append(trail, pages.ConsoleLink{Name: v.called(n, of), URL: v.url(one, of)})
		}
	}
	return trail
}

// called returns the object of an operation by name: a client by its own name.
func (v *view) called(n noun, subject url.Values) string {
	if id := subject.Get("id"); n.name == clients.name && id != "" {
		if c, err := admin.ClientShow.Do(v.r.Context(), v.as, admin.ClientID{ID: id}); err == nil {
			return named(c.Name, id)
		}
	}
	return shortened(subjectText(subject))
}

// subjectText returns the object of an operation as text.
func subjectText(subject url.Values) string {
	var out []string
	for _, field := range slices.Sorted(maps.Keys(subject)) {
		out = append(out, subject[field]...)
	}
	return strings.Join(out, " ")
}
