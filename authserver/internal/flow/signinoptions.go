package flow

import (
	"slices"

	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/internal/delegation"
)

// SignInOptions lists the sign-in methods of this server.
type SignInOptions struct {
	Password bool
	At       Listing // nil: no providers
	Default  string  // provider for users who name none, "" for the page with the choice
}

// Listing lists providers.
type Listing interface {
	Providers() []delegation.Provider
	Route(loginHint string) string
}

// Providers lists the providers in the order of the sign-in page.
func (w *SignInOptions) Providers() []delegation.Provider {
	if w.At == nil {
		return nil
	}
	return w.At.Providers()
}

// Provider returns the provider with an id.
func (w *SignInOptions) Provider(id string) (delegation.Provider, bool) {
	all := w.Providers()
	i := slices.IndexFunc(all, func(p delegation.Provider) bool { return p.ID == id })
	if i < 0 {
		return delegation.Provider{}, false
	}
	return all[i], true
}

// Several reports whether the user has a choice; password adds the password form.
func (w *SignInOptions) Several(password bool) bool {
	n := len(w.Providers())
	return n > 1 || password && n > 0
}

// pick returns the provider for a sign-in: the requested one, or the one for the client's login
// hint. It returns "" for the page with the choice. Unknown providers are ignored.
func (w *SignInOptions) pick(asked, routed string) string {
	if all := w.Providers(); len(all) == 1 && !w.Several(w.Password) {
		return all[0].ID
	}
	if asked == form.AnyProvider {
		return ""
	}
	for _, id := range []string{asked, routed, w.Default} {
		if _, ok := w.Provider(id); ok {
			return id
		}
	}
	return ""
}

func (w *SignInOptions) pickFor(p form.Params) string {
	routed := ""
	if hint := p.Get("login_hint"); hint != "" && w.At != nil {
		routed = w.At.Route(hint)
	}
	return w.pick(p.Get(form.ParamProvider), routed)
}

// ForAnother returns the request of a user who has signed out so that another user can sign in.
func (w *SignInOptions) ForAnother(q form.Query) form.Query {
	if w.At == nil {
		return q
	}
	return q.AsAnotherPerson()
}
