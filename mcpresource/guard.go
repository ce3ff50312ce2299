package mcpresource

import (
	"errors"
	"fmt"
	"net/http"

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
	c           Config
	own         *address // the resource
	aliases     []*address
	documents   map[string]http.Handler
	steps       []step // in the order of judge
	sites       *sites
	callers     *callers
	bindings    *bindings
	load        *load
	bodies      *bodies
	permissions *permissions
	sessions    *sessions
	approvals   *approvals
	challenges  challenges
	refused     refusalLog
	passed      *bounded.Map[string, struct{}] // tokens and grants let through
}

// New returns a guard. It returns an error if c is invalid.
func New(c Config) (*Guard, error) {
	g := &Guard{c: c.withDefaults()}
	g.challenges = challenges{first: g.c.FirstScopes, mode: g.c.StepUp}
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
	g.refused.limit = bounded.NewLimiter[Outcome](64, g.c.Now)
	g.passed = bounded.New[string, struct{}](maxPassed, g.c.Now)
	if r, ok := c.Policy.(*Rules); ok {
		if err := rules.CheckRules(r); err != nil {
			return nil, err
		}
		if err := checkClearances(&g.c, r); err != nil {
			return nil, err
		}
	}
	if limits.Share(g.c.Bodies) < g.c.MaxBodyBytes {
		return nil, errors.New(
			"mcpresource: Bodies: no caller could send a body of MaxBodyBytes, which may be a quarter of it at most",
		)
	}
	var err error
	g.sites, err = newSites(&g.c, g.own)
	if err := errors.Join(limits.CheckLimits(c.Limits, c.Limiter), err); err != nil {
		return nil, err
	}
	if g.bindings, err = newBindings(&g.c, g.challenges); err != nil {
		return nil, err
	}
	g.arrange()
	return g, errors.Join(g.document(), g.fits())
}

// arrange makes the steps, in the order of judge.
func (g *Guard) arrange() {
	c := &g.c
	g.load = &load{limits: c.Limits, refusals: limits.NewBuckets(c.Now)}
	g.bodies = &bodies{most: c.MaxBodyBytes, memory: c.Bodies, load: g.load}
	g.sessions = newSessions(c)
	g.permissions = &permissions{
		challenges: g.challenges, policy: c.Policy, now: c.Now, load: g.load,
		hierarchic: func(s oauth.Scopes) oauth.Scopes { return s },
	}
	g.callers = &callers{
		challenges: g.challenges, validator: c.Validator, issuers: c.AuthorizationServers, skew: c.ClockSkew,
		now: c.Now, bindings: g.bindings, load: g.load, policy: c.Policy,
	}
	if r, ok := c.Policy.(*Rules); ok {
		g.permissions.base, g.permissions.hierarchic = r.Base, rules.Expansion(r)
		g.permissions.policy, g.callers.proofs = rules.Compile(r), len(r.Authentication) > 0
	}
	g.approvals = &approvals{
		challenges: g.challenges, by: c.Clearances, sessions: g.sessions, wait: clearanceWait, poll: clearancePoll,
	}
	g.steps = []step{
		g.sites,
		preflights{g.sites},
		g.callers,
		g.load,
		methods{},
		g.bodies,
		g.permissions,
		rates{c.Limiter},
		objects{c.Check},
		g.sessions,
		g.approvals,
	}
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
	if g.bindings.offered {
		proofs = dpop.Algorithms()
	}
	add := func(resource, name string) error {
		h, err := metadata.Handler(metadata.ProtectedResource{
			DPoPAlgorithms: proofs, DPoPRequired: g.bindings.Required,
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
