package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/policy"
	"github.com/mcp-authd/mcp-authd/storage"
)

// misfit is a resource or scope that the configuration names and this server does not have. No
// token is ever issued for it, and a rule about it protects nothing.
type misfit struct{ what, advice string }

// misfits compares the configuration with what tokens can be issued for.
type misfits struct {
	known *policy.Catalogue
	found []misfit
}

// misfits returns everything that the configuration names and is not among the resources.
func (a *app) misfits(known []storage.Resource) ([]misfit, error) {
	catalog, err := policy.NewCatalogue(known)
	if err != nil {
		return nil, err
	}
	m := &misfits{known: catalog}
	for i, c := range a.config.Connectors() {
		for j, r := range c.ScopeRules {
			key := fmt.Sprintf("thirdparty[%d].scope_rules[%d]", i, j)
			m.compare(key, listOf(r.Resource), r.Scopes)
			m.alias(key, r.Resource)
		}
		for j, r := range c.Broker {
			key := fmt.Sprintf("thirdparty[%d].broker[%d]", i, j)
			m.compare(key, listOf(r.Resource), nil)
			m.alias(key, r.Resource)
		}
	}
	for i, c := range a.config.Clients {
		m.compare(fmt.Sprintf("clients[%d]", i), c.Resources, c.Scopes)
	}
	for i := range a.config.Resources {
		m.broker(fmt.Sprintf("resources[%d].upstream.broker", i), a.config, &a.config.Resources[i])
	}
	return m.found, nil
}

// listOf is what a rule about one resource names: nothing when it is about all.
func listOf(resource string) []string {
	if resource == "" {
		return nil
	}
	return []string{resource}
}

func (m *misfits) add(advice, what string, args ...any) {
	m.found = append(m.found, misfit{fmt.Sprintf(what, args...), advice})
}

// compare looks at what one entry names: resources, and scopes of theirs, or of any resource
// when it names none.
func (m *misfits) compare(key string, resources []string, scopes oauth.Scopes) {
	unknown := m.known.Unknown(resources)
	for _, uri := range unknown {
		m.add("correct it, or add it: mcp-authd resource add "+uri,
			"%s: %s is not a resource of this server, which has %s", key, uri, orNothing(resourceURIs(m.known)))
	}
	if len(unknown) > 0 {
		return // its scopes are not known either
	}
	offered := m.known.Offered(resources)
	for _, scope := range scopes.Without(policy.OwnScopes) {
		if !offered.Has(scope) {
			m.add("correct it, or add it to the scopes of the resource (in the configuration, or with: mcp-authd resource set)",
				"%s: %q is not a scope of %s, which has %s", key, scope, orAny(resources), orNothing(offered))
		}
	}
}

// alias looks at the resource that a rule is about. Rules go by the resource at all of its URLs, so that
// no alias is a way past them, and one that names an alias holds for none.
func (m *misfits) alias(key, uri string) {
	if r, ok := m.known.Lookup(policy.Canonical(uri)); ok && r.AliasOf != "" {
		m.add("name the resource, which has its rules at every alias", "%s: %s is an alias of %s", key, uri, r.AliasOf)
	}
}

// broker looks at the provider whose tokens an upstream is to get.
func (m *misfits) broker(key string, c *config.Loaded, r *config.Resource) {
	id := r.Upstream.Broker.Provider
	if id == "" {
		return
	}
	var providers []string
	for _, p := range c.Connectors() {
		providers = append(providers, p.ID)
		if p.ID != id {
			continue
		}
		var allowed []string
		for _, rule := range p.Broker {
			allowed = append(allowed, rule.Resource)
		}
		if !slices.Contains(allowed, policy.Canonical(r.URI)) {
			m.add("name it under broker of that provider", "%s: %s may not have tokens of %s, whose broker names %s",
				key, r.URI, id, orNothing(allowed))
		}
	}
	if !slices.Contains(providers, id) {
		m.add("correct it, or add it to thirdparty", "%s: %q is not a provider of this server, which has %s", key, id,
			orNothing(providers))
	}
}

func resourceURIs(known *policy.Catalogue) (out []string) {
	for _, r := range known.Resources() {
		out = append(out, r.URI)
	}
	return out
}

func orNothing(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func orAny(resources []string) string {
	if len(resources) == 0 {
		return "any resource of this server"
	}
	return strings.Join(resources, ", ")
}
