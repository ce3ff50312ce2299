package mcpresource

import (
	"context"
	"log/slog"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/limits"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/token"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Config describes one protected MCP endpoint. Resource, AuthorizationServers and
// Validator are required; every other zero value is a safe default.
type Config struct {
	// Resource is the public URL of the endpoint: the resource identifier and required audience.
	// Clients compare it with the URL that they were given.
	Resource string
	// Aliases are additional public URLs of the endpoint, such as
	// "https://mcp.example.com/mcp@work". They let one client connect as several users, because
	// clients keep tokens by URL. Each alias is a separate resource identifier, with its own
	// metadata, challenge and required audience: a token for one URL is rejected at the others.
	// Everything else is shared. An alias must have the origin of Resource and another path,
	// without escapes or a query (oauth.CanonicalAlias). Proxies must not change the path. The
	// authorization server must know each alias.
	Aliases []string
	// AuthorizationServers are the issuers whose tokens are accepted. They are published in the
	// metadata.
	AuthorizationServers []string
	Validator            Validator
	// OriginAudience also accepts tokens for the origin of Resource, such as
	// "https://mcp.example.com", for authorization servers that know this MCP server by that name.
	// Such tokens are valid at every server on the origin that accepts them (RFC 8707 §2). With
	// mcp-authd it is not needed: a client that asks for the origin gets a token for the resource.
	OriginAudience bool
	// Policy states the requirements of operations. Default: any valid token may do anything.
	Policy Policy
	// Check decides about the object of an operation once the caller has the scopes: a scope does
	// not say on whose objects the caller may act. An error refuses the request with 403, or with
	// 503 if it wraps ErrUnavailable. Its text is only logged.
	Check func(ctx context.Context, p *Principal, op Operation) error
	// FirstScopes are the scopes in the challenge for clients without a valid token (401). Default:
	// the Base of Rules.
	FirstScopes []string
	// StepUp selects the scopes in the challenge for clients that lack one (403).
	StepUp StepUp
	// StructuredDenials adds data.authorization to the body of a 403, following the draft SEP-2643,
	// for clients that show the reason. The challenge still decides. The form may change with the
	// draft.
	StructuredDenials bool
	Metadata          Metadata
	// Origins are the web origins that may call in addition to the resource's own, such as
	// "https://app.example.com". Requests without Origin are not from a browser. Other origins are
	// refused, against foreign web pages and DNS rebinding.
	Origins []string
	// Hosts are the Host values accepted in addition to the resource's own. For a resource on
	// loopback, every loopback name with any port is accepted.
	Hosts []string
	// CORS answers preflights of permitted origins and lets them read responses.
	CORS bool
	// DPoP announces tokens that are bound to a key. Such tokens are checked even if it is nil.
	DPoP   *DPoP
	Limits Limits // the zero value has limits that ordinary clients never reach
	// Limiter replaces Limits.Calls and Limits.Tools, which must then be empty. It is for replicas
	// that share a counter: see NewLimiter. The other limits still apply.
	Limiter  Limiter
	Sessions SessionBinder // default: bounded, in memory
	// SessionOwner selects who owns a session. Default: the user.
	SessionOwner SessionOwner
	// MaxSessions is the maximum number of a user's sessions that were used in the last half hour.
	// Default: 500, because users have many applications, and most applications do not end their
	// sessions. Negative: unlimited.
	MaxSessions int
	// MaxAnonymousSessions is the same limit for sessions opened by a public initialize and not
	// used with a token since. Default: 1,000; negative: unlimited.
	MaxAnonymousSessions int
	// Decisions receives requests that are refused with 401 or 403, and returns the reference for
	// the client. Default: the Validator if it implements Decisions, as Local does for an
	// authserver.Server.
	Decisions Decisions
	// Clearances requests approvals that Rules.Clearances or another Policy requires. It receives
	// the caller's token. Default: the Validator if it implements Clearances, as Local does for an
	// authserver.Server. Without one, calls that need approval get 503.
	Clearances Clearances
	// Audit is called for each HTTP request once the guard has decided, including requests refused
	// before their call is read. Calls then reports the calls themselves. It must not block.
	Audit func(Event)
	// Calls is called for each call in a message when it has finished or was refused, with its
	// caller, duration and outcome. It must not block. The context is the request's, and may have
	// ended. Default: LogCalls(Logger).
	Calls func(context.Context, CallEvent)
	// CallArguments includes the arguments in CallEvent, with any personal data in them.
	CallArguments bool
	// Tracer traces requests and calls; see otelmcp.New. Default: none.
	Tracer Tracer
	Now    func() time.Time // default time.Now
	// ClockSkew is the tolerated difference to the issuer's clock. Default: 30 seconds.
	ClockSkew time.Duration
	// MaxBodyBytes is the maximum size of a request body. Default: 4 MiB.
	MaxBodyBytes int64
	// Bodies limits the memory for the bodies of all requests. Beyond it, requests get 503.
	// Default: 128 MiB for this guard, or eight times MaxBodyBytes if that is more.
	Bodies *Bodies
	// Logger logs each refused request in one line, with the reason and the expected value but
	// never a token. Refused calls are logged by Calls instead. After a burst of twenty, it is
	// limited to one line a second for each Outcome. Default: discard.
	Logger *slog.Logger
}

// Metadata adjusts the RFC 9728 document.
type Metadata struct {
	Name, Documentation, Policy, Terms string
	// ScopesSupported are the scopes that clients request first; many request all of them. Default:
	// FirstScopes. It must not contain offline_access.
	ScopesSupported []string
	// PathOnly omits the document at the root of the host, for hosts that several MCP servers
	// share.
	PathOnly bool
}

// StepUp selects the scopes in the challenge of a 403. They always include all scopes that the
// message needs, so that one more sign-in is enough.
type StepUp int

const (
	// StepUpByRevision is StepUpOperation for clients of 2026-07-28 and later, which add the scopes
	// to their current ones. For older clients it is StepUpGranted: many of them request only the
	// named scopes and would lose the rest.
	StepUpByRevision StepUp = iota
	// StepUpOperation names the scopes that the operation needs.
	StepUpOperation
	// StepUpGranted also names the scopes that the token has.
	StepUpGranted
)

func (c Config) withDefaults() Config {
	if c.Policy == nil {
		c.Policy = &Rules{}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Sessions == nil {
		c.Sessions = limits.NewMemory(0, c.Now)
	}
	if c.MaxSessions == 0 {
		c.MaxSessions = 500
	}
	if c.MaxAnonymousSessions == 0 {
		c.MaxAnonymousSessions = 1000
	}
	if c.FirstScopes == nil {
		if r, ok := c.Policy.(*Rules); ok {
			c.FirstScopes = r.Base
		}
	}
	c.FirstScopes = oauth.Scopes(c.FirstScopes).Without(oauth.Scopes{oauth.OfflineAccess}) // RS-21
	if c.Calls == nil && c.Logger != nil {
		c.Calls = LogCalls(c.Logger)
	}
	c.Limits = limits.LimitsWithDefaults(c.Limits)
	if c.Limiter == nil {
		c.Limiter = limits.NewRates(c.Limits, c.Now)
	}
	if c.Decisions == nil {
		c.Decisions, _ = c.Validator.(Decisions)
	}
	if c.Clearances == nil {
		c.Clearances = clearancesOf(c.Validator)
	}
	if c.ClockSkew == 0 {
		c.ClockSkew = token.DefaultSkew
	}
	if c.MaxBodyBytes == 0 {
		c.MaxBodyBytes = 4 << 20
	}
	if c.Bodies == nil {
		c.Bodies = NewBodies(max(limits.DefaultBodies, 8*c.MaxBodyBytes))
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}
