package mcpresource

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/metadata"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// address is a public URL of the endpoint: the resource or an alias.
type address struct {
	resource  string   // canonical
	audiences []string // canonical, of accepted tokens
	path      string   // of requests, as a mux matches it
	metadata  string   // URL of the RFC 9728 document
	target    string   // htu of DPoP proofs: the resource without its query
}

func newAddress(resource, public string) *address {
	a := &address{resource: resource, audiences: []string{resource}, metadata: metadata.ProtectedResourceURL(public)}
	a.target, _, _ = strings.Cut(resource, "?")
	return a
}

// address sets the addresses of the endpoint.
func (g *Guard) address() error {
	canonical, err := oauth.CanonicalResource(g.c.Resource)
	if err != nil {
		return fmt.Errorf("mcpresource: Resource: %w", err)
	}
	u, err := url.Parse(g.c.Resource)
	if err != nil {
		return fmt.Errorf("mcpresource: Resource: %w", err)
	}
	g.own = newAddress(canonical, g.c.Resource)
	if g.own.path = u.EscapedPath(); g.own.path == "" {
		g.own.path = "/"
	}
	if g.c.OriginAudience {
		g.own.audiences = append(g.own.audiences, oauth.ResourceOrigin(canonical))
	}
	aliases, err := oauth.CanonicalAliases(canonical, g.c.Aliases)
	if err != nil {
		return fmt.Errorf("mcpresource: Aliases: %w", err)
	}
	for _, alias := range aliases {
		a := newAddress(alias, alias)
		a.path = strings.TrimPrefix(alias, oauth.ResourceOrigin(alias))
		g.aliases = append(g.aliases, a)
	}
	return nil
}

// at returns the address of a request: the alias with its path, else the resource, because a proxy
// may have changed the path.
func (g *Guard) at(r *http.Request) *address {
	path := strings.TrimRight(r.URL.Path, "/")
	for _, a := range g.aliases {
		if a.path == path {
			return a
		}
	}
	return g.own
}

// Resources returns the canonical URLs of the endpoint: the resource, then its aliases.
func (g *Guard) Resources() []string {
	out := []string{g.own.resource}
	for _, a := range g.aliases {
		out = append(out, a.resource)
	}
	return out
}

func (a *address) isAudience(aud string) bool {
	if slices.Contains(a.audiences, aud) {
		return true
	}
	canonical, err := oauth.CanonicalResource(aud)
	return err == nil && slices.Contains(a.audiences, canonical)
}
