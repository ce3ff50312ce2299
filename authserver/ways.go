package authserver

import (
	"net/url"
	"slices"

	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/delegation"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/web"
)

// paramProvider is a parameter of ours at /authorize: the id of the provider to sign in
// at, or anyProvider for the page on which people choose.
const (
	paramProvider = "provider"
	anyProvider   = "*"
)

// ways are the ways to sign in here.
type ways struct {
	local     bool // with a password
	providers []delegation.Provider
	fallback  string // for whoever does not say
}

func (s *Server) ways() ways {
	w := ways{local: !s.cfg.NoLocalLogin, fallback: s.cfg.DefaultProvider}
	if s.cfg.Delegation != nil {
		w.providers = s.cfg.Delegation.Providers()
	}
	return w
}

func (w ways) provider(id string) (delegation.Provider, bool) {
	i := slices.IndexFunc(w.providers, func(p delegation.Provider) bool { return p.ID == id })
	if i < 0 {
		return delegation.Provider{}, false
	}
	return w.providers[i], true
}

// several reports whether there is anything to choose.
func (w ways) several() bool { return len(w.providers) > 1 || w.local && len(w.providers) > 0 }

// pick returns the provider that somebody who asked for one, or is routed to one by what
// the client knows about them, signs in at; "" for the page on which people choose. An
// unknown provider is no answer to the question.
func (w ways) pick(asked, routed string) string {
	if !w.several() && len(w.providers) == 1 {
		return w.providers[0].ID
	}
	if asked == anyProvider {
		return ""
	}
	for _, id := range []string{asked, routed, w.fallback} {
		if _, ok := w.provider(id); ok {
			return id
		}
	}
	return ""
}

func (s *Server) pickProvider(p form.Params) string {
	if s.cfg.Delegation == nil {
		return ""
	}
	routed := ""
	if hint := p.Get("login_hint"); hint != "" {
		routed = s.cfg.Delegation.Route(hint)
	}
	return s.ways().pick(p.Get(paramProvider), routed)
}

// choices are the providers on a page for whoever is not signed in: links to an
// authorization request that continues there, or forms that lead back to state.
func (s *Server) choices(browser string, state loginState) (out []web.Choice, err error) {
	for _, p := range s.ways().providers {
		c := web.Choice{Provider: providerView(p)}
		if state.Query != "" {
			c.URL = s.authorizeAt(state.Query, p.ID)
		} else if c, err = s.choice(browser, p, departState{Errand: delegation.PurposeSignIn, Trip: tripState{Connect: state.Connect}}); err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// choice is a form that sends the browser to a provider.
func (s *Server) choice(browser string, p delegation.Provider, state departState) (web.Choice, error) {
	state.Provider = p.ID
	step, err := s.sessions.SealStep(purposeDepart, browser, state)
	return web.Choice{Provider: providerView(p), Action: s.paths.depart, Step: step}, err
}

// authorizeAt is where an authorization request continues at a provider.
func (s *Server) authorizeAt(query, provider string) string {
	v := requested(query).values()
	v.Set(paramProvider, provider)
	return s.paths.authorize + "?" + v.Encode()
}

// targets are the providerTargets of a page that has a form for each provider.
func (w ways) targets() (out []string) {
	for _, p := range w.providers {
		out = append(out, providerTargets(p)...)
	}
	return out
}

func providerView(p delegation.Provider) web.Provider {
	return web.Provider{Name: p.Name, Icon: p.Icon, Host: p.Host}
}

// providerTargets are for form-action, for browsers that do not say what they are and get
// a redirect to the provider; see web.Pages.Leaving.
func providerTargets(p delegation.Provider) []string {
	origin := (&url.URL{Scheme: "http", Host: p.Host}).String()
	if !oauth.IsLoopbackRedirect(origin + "/") {
		origin = (&url.URL{Scheme: "https", Host: p.Host}).String()
	}
	return formTargets(origin)
}
