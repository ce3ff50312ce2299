package installation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Misfit is a configured resource or scope that this server does not have. No token is ever issued
// for it, and a rule about it protects nothing.
type Misfit struct{ What, Advice string }

// misfits compares the configuration with the resources and scopes that tokens can be issued for.
type misfits struct {
	known *policy.Catalogue
	found []Misfit
}

// Misfits returns all configured names that are not among the resources.
func (in *Installation) Misfits(known []storage.Resource) ([]Misfit, error) {
	catalog, err := policy.NewCatalogue(known)
	if err != nil {
		return nil, err
	}
	m := &misfits{known: catalog}
	for i, c := range in.Config.Connectors() {
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
	for i, c := range in.Config.Clients {
		m.compare(fmt.Sprintf("clients[%d]", i), c.Resources, c.Scopes)
	}
	for i := range in.Config.Resources {
		m.broker(fmt.Sprintf("resources[%d].upstream.broker", i), in.Config, &in.Config.Resources[i])
	}
	return m.found, nil
}

// listOf returns the resource of a rule as a list, empty if the rule is about all resources.
func listOf(resource string) []string {
	if resource == "" {
		return nil
	}
	return []string{resource}
}

func (m *misfits) add(advice, what string, args ...any) {
	m.found = append(m.found, Misfit{fmt.Sprintf(what, args...), advice})
}

// compare checks the resources of one entry, and its scopes. Without resources, a scope may belong
// to any of them.
func (m *misfits) compare(key string, resources []string, scopes oauth.Scopes) {
	unknown := m.known.Unknown(resources)
	for _, uri := range unknown {
		m.add("correct it, or add it: mcp-authd resource add "+uri,
			"%s: %s is not a resource of this server, which has %s", key, uri, orNothing(resourceURIs(m.known)))
	}
	if len(unknown) > 0 {
		return // so its scopes are unknown
	}
	offered := m.known.Offered(resources)
	for _, scope := range scopes.Without(policy.OwnScopes) {
		if !offered.Has(scope) {
			m.add("correct it, or add it to the scopes of the resource (in the configuration, or with: mcp-authd resource set)",
				"%s: %q is not a scope of %s, which has %s", key, scope, orAny(resources), orNothing(offered))
		}
	}
}

// alias checks the resource of a rule. A rule applies to all URLs of a resource, so that no alias
// bypasses it. A rule that names an alias applies to nothing.
func (m *misfits) alias(key, uri string) {
	if r, ok := m.known.Lookup(policy.Canonical(uri)); ok && r.AliasOf != "" {
		m.add("name the resource, which has its rules at every alias", "%s: %s is an alias of %s", key, uri, r.AliasOf)
	}
}

// broker checks the provider whose tokens an upstream gets.
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
