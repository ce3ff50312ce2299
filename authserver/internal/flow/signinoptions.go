package flow

import (
	"slices"

	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/delegation"
)

// SignInOptions are the ways to sign in here.
type SignInOptions struct {
	Password bool
	At       Listing // nil: at no provider
	Default  string  // the provider for a person who does not say, "" for the page on which people choose
}

// Listing lists providers.
type Listing interface {
	Providers() []delegation.Provider
	Route(loginHint string) string
}

// Providers lists the providers, in the order in which people are offered them.
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

// Several reports whether there is anything to choose, with or without a form for a password.
func (w *SignInOptions) Several(password bool) bool {
	n := len(w.Providers())
	return n > 1 || password && n > 0
}

// pick returns the provider that a person who asked for one, or is routed to one by what
// the client knows about them, signs in at; "" for the page on which people choose. An
// unknown provider is no answer to the question.
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

// ForAnother is the request of a person who has signed out, for another one to sign in.
func (w *SignInOptions) ForAnother(q form.Query) form.Query {
	if w.At == nil {
		return q
	}
	return q.AsAnotherPerson()
}
