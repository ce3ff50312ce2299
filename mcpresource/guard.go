package mcpresource

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/metadata"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Config describes one protected MCP endpoint. Resource, AuthorizationServers and
// Validator are required; every other zero value is a safe default.
type Config struct {
	// Resource is the public URL of the endpoint: the resource identifier, the
	// required audience, and what clients compare with the URL they were given.
	Resource string
	// AuthorizationServers are the issuers whose tokens are accepted, and published.
	AuthorizationServers []string
	Validator            Validator
	// Policy says what operations need. Default: any valid token may do anything.
	Policy   Policy
	Metadata Metadata
	// Origins are the web origins that may call besides the resource's own, such as
	// "https://app.example.com". A request without Origin is not from a browser.
	Origins []string
	// Hosts are the Host values that are accepted besides the resource's own; when the
	// resource is on loopback, every loopback name with any port is.
	Hosts []string
	// CORS answers the preflights of permitted origins and lets them read responses.
	CORS     bool
	Limiter  Limiter       // default: none; see PerPrincipal
	Sessions SessionBinder // default: bounded, in memory
	// MaxSessions bounds the sessions of one caller that were used in the last half hour.
	// Default: 100; negative: any number.
	MaxSessions int
	Audit       func(Event)      // called once for each decision; must not block
	Now         func() time.Time // default time.Now
	// ClockSkew is allowed between this clock and the issuer's. Default: 30 seconds.
	ClockSkew time.Duration
	// MaxBodyBytes bounds the body of a request. Default: 4 MiB.
	MaxBodyBytes int64
	Logger       *slog.Logger // default: discard
}

// Metadata adjusts the RFC 9728 document.
type Metadata struct {
	Name, Documentation, Policy, Terms string
	// ScopesSupported is what clients ask for first; many ask for all of it. Default:
	// the Base of Rules. offline_access never belongs here.
	ScopesSupported []string
	// PathOnly leaves out the document at the root of the host, which is right where
	// several MCP servers share it.
	PathOnly bool
}

// Event is one decision of the guard. It never holds a token.
type Event struct {
	Time       time.Time
	Outcome    string // allowed, or the reason: host, origin, unauthenticated, malformed, method, invalid_token, unavailable, ambiguous, too_large, too_slow, insufficient_scope, limited, session; ended when it had begun and its token was revoked, or its status was out of reach
	Status     int    // of the refusal; 0 when allowed
	Principal  *Principal
	Operations []Operation // methods and names; arguments are left out
	Method     string      // HTTP
	RemoteAddr string
	Err        error
}

// Guard protects one MCP endpoint. It is safe for concurrent use.
type Guard struct {
	c          Config
	resource   string   // canonical
	audiences  []string // canonical: the resource, and its origin when the root document is served
	path       string   // of the endpoint
	base       oauth.Scopes
	metadata   string // URL of the RFC 9728 document
	documents  map[string]http.Handler
	hosts      []string
	anyLocal   bool
	origins    []string
	hierarchic func(oauth.Scopes) oauth.Scopes
	opening    openings
	bodyTime   time.Duration
}

// New returns a guard, or an error that says what in c is wrong.
func New(c Config) (*Guard, error) {
	canonical, err := oauth.CanonicalResource(c.Resource)
	if err != nil {
		return nil, fmt.Errorf("mcpresource: Resource: %w", err)
	}
	if err := checkEndpoint(c.Resource); err != nil {
		return nil, fmt.Errorf("mcpresource: Resource %w", err)
	}
	switch {
	case len(c.AuthorizationServers) == 0:
		return nil, errors.New("mcpresource: AuthorizationServers is empty")
	case c.Validator == nil:
		return nil, errors.New("mcpresource: Validator is nil")
	}
	for _, issuer := range c.AuthorizationServers {
		if err := checkEndpoint(issuer); err != nil {
			return nil, fmt.Errorf("mcpresource: AuthorizationServers: %w", err)
		}
	}
	g := &Guard{c: c.withDefaults(), resource: canonical, audiences: []string{canonical}, bodyTime: bodyTime}
	g.hierarchic = func(s oauth.Scopes) oauth.Scopes { return s }
	if r, ok := c.Policy.(*Rules); ok {
		g.base, g.hierarchic = r.Base, r.expand
	}
	if err := g.admit(); err != nil {
		return nil, err
	}
	return g, g.document()
}

func (c Config) withDefaults() Config {
	if c.Policy == nil {
		c.Policy = &Rules{}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Sessions == nil {
		c.Sessions = newMemory(0, c.Now)
	}
	if c.MaxSessions == 0 {
		c.MaxSessions = 100
	}
	if c.ClockSkew == 0 {
		c.ClockSkew = defaultSkew
	}
	if c.MaxBodyBytes == 0 {
		c.MaxBodyBytes = 4 << 20
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// admit works out which hosts and origins are ours.
func (g *Guard) admit() error {
	u, err := url.Parse(g.c.Resource)
	if err != nil {
		return fmt.Errorf("mcpresource: Resource: %w", err)
	}
	if g.path = u.EscapedPath(); g.path == "" {
		g.path = "/"
	}
	g.anyLocal = oauth.IsLoopbackHost(u.Hostname())
	g.hosts = []string{strings.ToLower(u.Host)}
	for _, h := range g.c.Hosts {
		g.hosts = append(g.hosts, strings.ToLower(h))
	}
	g.origins = []string{oauth.ResourceOrigin(g.resource)}
	for _, o := range g.c.Origins {
		canonical, err := oauth.CanonicalResource(o)
		if err != nil || oauth.ResourceOrigin(canonical) != canonical {
			return fmt.Errorf("mcpresource: Origins: %q is not an origin such as https://app.example.com", o)
		}
		g.origins = append(g.origins, canonical)
	}
	return nil
}

// document builds the RFC 9728 documents: one for the resource at the path-inserted
// location and, unless PathOnly, one for its origin at the root (RFC 9728 §3.1), whose
// resource is then the origin, because strict clients compare the two (§3.3).
func (g *Guard) document() error {
	g.documents = map[string]http.Handler{}
	scopes := oauth.Scopes(g.c.Metadata.ScopesSupported)
	if scopes == nil {
		scopes = g.base
	}
	scopes = scopes.Without(oauth.Scopes{oauth.OfflineAccess})
	add := func(resource string) error {
		h, err := metadata.Handler(metadata.ProtectedResource{
			Resource: resource, AuthorizationServers: g.c.AuthorizationServers, ScopesSupported: metadata.Values(scopes),
			BearerMethods: metadata.Values{"header"}, ResourceName: g.c.Metadata.Name, Documentation: g.c.Metadata.Documentation,
			PolicyURI: g.c.Metadata.Policy, TermsURI: g.c.Metadata.Terms,
		})
		if err != nil {
			return fmt.Errorf("mcpresource: %w", err)
		}
		g.documents[metadata.ProtectedResourcePath(resource)] = h
		return nil
	}
	g.metadata = metadata.ProtectedResourceURL(g.c.Resource)
	if err := add(g.c.Resource); err != nil {
		return err
	}
	origin := oauth.ResourceOrigin(g.resource)
	if g.c.Metadata.PathOnly || origin == g.resource {
		return nil
	}
	g.audiences = append(g.audiences, origin)
	return add(origin)
}

// MetadataURL returns the location of the RFC 9728 document that challenges name.
func (g *Guard) MetadataURL() string { return g.metadata }

// Register mounts the documents and, behind the guard, mcp at the path of the
// resource.
func (g *Guard) Register(mux *http.ServeMux, mcp http.Handler) {
	for path, h := range g.documents {
		metadata.Mount(mux, h, path)
	}
	metadata.Mount(mux, g.Protect(mcp), g.path)
}

// Handler returns a handler with the documents and, at the path of the resource, the
// protected mcp; everything else is 404.
func (g *Guard) Handler(mcp http.Handler) http.Handler {
	mux := http.NewServeMux()
	g.Register(mux, mcp)
	return mux
}

// Authorize checks once more, for adapters that see the decoded call, whether the
// caller in ctx may do op. Nil means yes; otherwise a *ScopeError, ErrNoCaller, or
// ErrResourceURI for a resource that nobody may name so.
func (g *Guard) Authorize(ctx context.Context, op Operation) error {
	if err := op.check(); err != nil {
		return err
	}
	need := g.c.Policy.Require(op)
	if need.Public {
		return nil
	}
	p, ok := FromContext(ctx)
	if !ok {
		return ErrNoCaller
	}
	if scope := g.sufficient(p, need); scope != nil {
		return scope
	}
	return nil
}

// sufficient compares what is needed with what the caller has, by the hierarchy.
func (g *Guard) sufficient(p *Principal, need Requirement) *ScopeError {
	if need.Deny {
		return &ScopeError{Denied: true}
	}
	held := g.hierarchic(p.Scopes)
	if held.Has(need.Scopes...) {
		return nil
	}
	return &ScopeError{Required: slices.Clone(need.Scopes), Missing: oauth.Scopes(need.Scopes).Without(held)}
}
