package mcpresource

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/dpop"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/issuer"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/limits"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/rules"
	"github.com/mcp-authd/mcp-authd/metadata"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Guard protects one MCP endpoint. It is safe for concurrent use.
type Guard struct {
	c                 Config
	policy            Policy   // from c; Rules in a prepared form
	own               *address // the resource
	aliases           []*address
	base              oauth.Scopes // the scopes that Rules require for every operation
	proofs            bool         // whether some scope requires an authentication
	documents         map[string]http.Handler
	hosts             []string
	dpop              dpopConfig
	scheme            string
	anyLocal          bool
	origins           []string
	hierarchic        func(oauth.Scopes) oauth.Scopes
	opening           limits.Tally    // sessions about to be opened
	underway          limits.Tally    // running requests
	waiting           limits.Tally    // requests that wait for an approval
	anonymousSessions SessionBinder   // sessions only used without a token
	sessionless       SessionBinder   // initialize data of clients of servers without sessions
	refusals          *limits.Buckets // of requests without a valid token
	refused           refusalLog
	passed            *bounded.Map[string, struct{}] // tokens and grants let through
	judgings          judgings                       // of the tokens of running requests
	clearanceWait     time.Duration
	clearancePoll     time.Duration
}

// New returns a guard. It returns an error if c is invalid.
func New(c Config) (*Guard, error) {
	g := &Guard{c: c.withDefaults()}
	g.clearanceWait, g.clearancePoll = clearanceWait, clearancePoll
	if err := g.address(); err != nil {
		return nil, err
	}
	if err := issuer.CheckURL(c.Resource); err != nil {
		return nil, fmt.Errorf("mcpresource: Resource %w", err)
	}
	switch {
	case len(c.AuthorizationServers) == 0:
		return nil, errors.New("mcpresource: AuthorizationServers is empty")
	case c.Validator == nil:
		return nil, errors.New("mcpresource: Validator is nil")
	}
	for _, server := range c.AuthorizationServers {
		if err := issuer.CheckURL(server); err != nil {
			return nil, fmt.Errorf("mcpresource: AuthorizationServers: %w", err)
		}
	}
	g.anonymousSessions, g.refusals = limits.NewMemory(g.c.MaxAnonymousSessions, g.c.Now), limits.NewBuckets(g.c.Now)
	g.refused.limit = bounded.NewLimiter[Outcome](64, g.c.Now)
	g.sessionless = limits.NewMemory(0, g.c.Now)
	g.passed = bounded.New[string, struct{}](maxPassed, g.c.Now)
	g.hierarchic = func(s oauth.Scopes) oauth.Scopes { return s }
	g.policy = g.c.Policy
	if r, ok := c.Policy.(*Rules); ok {
		if err := rules.CheckRules(r); err != nil {
			return nil, err
		}
		if err := g.checkClearances(r); err != nil {
			return nil, err
		}
		g.base, g.hierarchic, g.policy = r.Base, rules.Expansion(r), rules.Compile(r)
		g.proofs = len(r.Authentication) > 0
	}
	if limits.Share(g.c.Bodies) < g.c.MaxBodyBytes {
		return nil, errors.New(
			"mcpresource: Bodies: no caller could send a body of MaxBodyBytes, which may be a quarter of it at most",
		)
	}
	if err := errors.Join(limits.CheckLimits(c.Limits, c.Limiter), g.admit()); err != nil {
		return nil, err
	}
	if err := g.bindDPoP(); err != nil {
		return nil, err
	}
	return g, errors.Join(g.document(), g.fits())
}

// admit sets the accepted hosts and origins.
func (g *Guard) admit() error {
	u, err := url.Parse(g.c.Resource)
	if err != nil {
		return fmt.Errorf("mcpresource: Resource: %w", err)
	}
	g.anyLocal = oauth.IsLoopbackHost(u.Hostname())
	g.scheme = strings.ToLower(u.Scheme)
	g.hosts = []string{canonicalHost(g.scheme, u.Host)}
	for _, h := range g.c.Hosts {
		host := canonicalHost(g.scheme, h)
		c, err := oauth.CanonicalResource(g.scheme + "://" + host)
		// a wildcard is not supported
		if err != nil || oauth.ResourceOrigin(c) != g.scheme+"://"+host || strings.Contains(host, "*") {
			return fmt.Errorf("mcpresource: Hosts: %q is not a host such as mcp.example.com or 10.0.0.7:8080", h)
		}
		g.hosts = append(g.hosts, host)
	}
	g.origins = []string{oauth.ResourceOrigin(g.own.resource)}
	for _, o := range g.c.Origins {
		canonical, err := oauth.CanonicalResource(o)
		if err != nil || oauth.ResourceOrigin(canonical) != canonical {
			return fmt.Errorf("mcpresource: Origins: %q is not an origin such as https://app.example.com", o)
		}
		g.origins = append(g.origins, canonical)
	}
	return nil
}

// document builds the RFC 9728 documents (RS-01, RS-04). There is one for the resource and one for
// each alias, at the path-inserted location. Unless PathOnly is set, there is another at the root
// (RFC 9728 §3.1). Its resource is the origin, because strict clients compare the two (§3.3).
func (g *Guard) document() error {
	g.documents = map[string]http.Handler{}
	scopes := oauth.Scopes(g.c.Metadata.ScopesSupported)
	if scopes == nil {
		scopes = g.c.FirstScopes
	}
	scopes = scopes.Without(oauth.Scopes{oauth.OfflineAccess})
	var proofs metadata.Values
	if g.dpop.offered {
		proofs = dpop.Algorithms()
	}
	add := func(resource, name string) error {
		h, err := metadata.Handler(metadata.ProtectedResource{
			DPoPAlgorithms: proofs, DPoPRequired: g.dpop.Required,
			Resource: resource, AuthorizationServers: g.c.AuthorizationServers,
			ScopesSupported: metadata.Values(scopes),
			BearerMethods:   metadata.Values{"header"}, ResourceName: name,
			Documentation: g.c.Metadata.Documentation,
			PolicyURI:     g.c.Metadata.Policy, TermsURI: g.c.Metadata.Terms,
		})
		if err != nil {
			return fmt.Errorf("mcpresource: %w", err)
		}
		g.documents[metadata.ProtectedResourcePath(resource)] = g.told(resource, h)
		return nil
	}
	name := g.c.Metadata.Name
	if err := add(g.c.Resource, name); err != nil {
		return err
	}
	for _, a := range g.aliases {
		if err := add(a.resource, oauth.AliasName(name, g.own.resource, a.resource)); err != nil {
			return err
		}
	}
	origin := oauth.ResourceOrigin(g.own.resource)
	if g.c.Metadata.PathOnly || origin == g.own.resource {
		return nil
	}
	return add(origin, name)
}

// MetadataURL returns the location of the RFC 9728 document in challenges. Challenges at an alias
// name the alias's own document.
func (g *Guard) MetadataURL() string { return g.own.metadata }

// Register mounts the documents, and mcp behind the guard at the paths of the resource and its
// aliases.
func (g *Guard) Register(mux *http.ServeMux, mcp http.Handler) {
	for path, h := range g.documents {
		metadata.Mount(mux, h, path)
	}
	protected := g.Protect(mcp)
	metadata.Mount(mux, protected, g.own.path)
	for _, a := range g.aliases {
		metadata.Mount(mux, protected, a.path)
	}
}

// Handler returns a handler with the documents, and the protected mcp at the paths of the resource
// and its aliases. Other paths get 404.
func (g *Guard) Handler(mcp http.Handler) http.Handler {
	mux := http.NewServeMux()
	g.Register(mux, mcp)
	return mux
}
