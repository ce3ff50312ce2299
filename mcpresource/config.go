package mcpresource

import (
	"context"
	"log/slog"
	"time"

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
	// OriginAudience accepts tokens for the origin of Resource as well, such as
	// "https://mcp.example.com": for an authorization server that knows this MCP server by
	// that name. They are good at everything else on the origin that says so too (RFC 8707
	// §2). mcp-authd needs it never: who asks for the origin gets a token for the resource.
	OriginAudience bool
	// Policy says what operations need. Default: any valid token may do anything.
	Policy Policy
	// Check looks at the object of an operation when the caller has the scopes of it: a
	// scope says what one may do, not to whose things. An error refuses (403), one that
	// wraps ErrUnavailable puts off (503); its text goes to the log alone.
	Check func(ctx context.Context, p *Principal, op Operation) error
	// FirstScopes are what a client without a good token is told to ask for (401).
	// Default: the Base of Rules.
	FirstScopes []string
	// StepUp says which scopes a client that lacks one is told to ask for (403).
	StepUp   StepUp
	Metadata Metadata
	// Origins are the web origins that may call as well as the resource's own, such as
	// "https://app.example.com". A request without Origin is not from a browser. All others are
	// refused, so that no other page, and no name that an attacker binds to this address, gets
	// further.
	Origins []string
	// Hosts are the Host values that are accepted as well as the resource's own; when the
	// resource is on loopback, every loopback name with any port is.
	Hosts []string
	// CORS answers the preflights of permitted origins and lets them read responses.
	CORS bool
	// DPoP offers tokens that are bound to a key. Such a token is judged in any case.
	DPoP   *DPoP
	Limits Limits // the zero value has limits that ordinary clients never reach
	// Limiter decides instead of Limits.Calls and Limits.Tools, which then have to be left out: it
	// is for replicas that share a count. The other limits hold beside it.
	Limiter  Limiter
	Sessions SessionBinder // default: bounded, in memory
	// SessionOwner says whom a session belongs to. Default: the person.
	SessionOwner SessionOwner
	// MaxSessions bounds the sessions of one person that were used in the last half hour.
	// Default: 500, for people have many applications, and few of those end their sessions;
	// negative: any number.
	MaxSessions int
	// MaxAnonymousSessions bounds those that a public initialize has opened in the same time and
	// that no caller with a token has used. Default: 1,000; negative: any number.
	MaxAnonymousSessions int
	// Audit is told of each HTTP request once, when it is decided: also of those that are refused
	// before there is a call in them, as for a bad token or Origin. It says who may get in; what
	// people did then is for Calls. It must not block.
	Audit func(Event)
	// Calls is told of each call in a message when it has ended, or was refused: what was done, by
	// whom, how long it took and how it ended. It must not block. The context is that of the
	// request, and may have ended. Default: LogCalls(Logger).
	Calls func(context.Context, CallEvent)
	// CallArguments puts the arguments into CallEvent, with whatever people say there.
	CallArguments bool
	Now           func() time.Time // default time.Now
	// ClockSkew is allowed between this clock and the issuer's. Default: 30 seconds.
	ClockSkew time.Duration
	// MaxBodyBytes bounds the body of a request. Default: 4 MiB.
	MaxBodyBytes int64
	// Bodies bounds what the bodies of all requests take together. Beyond it: 503. Default:
	// one of this guard, of 128 MiB, or eight times MaxBodyBytes if that is more.
	Bodies *Bodies
	Logger *slog.Logger // default: discard
}

// Metadata adjusts the RFC 9728 document.
type Metadata struct {
	Name, Documentation, Policy, Terms string
	// ScopesSupported is what clients ask for first; many ask for all of it. Default:
	// FirstScopes. offline_access never belongs here.
	ScopesSupported []string
	// PathOnly leaves out the document at the root of the host, which is right where
	// several MCP servers share it.
	PathOnly bool
}

// StepUp says which scopes the challenge of a 403 names. In each case they are all that
// the message needs, with all its operations, so that one more sign-in is enough.
type StepUp int

const (
	// StepUpByRevision is StepUpOperation for clients of 2026-07-28 and later, which add
	// what they are told to what they have, and StepUpGranted for older ones, of which
	// many ask for that alone and would lose the rest.
	StepUpByRevision StepUp = iota
	// StepUpOperation names what the operation needs.
	StepUpOperation
	// StepUpGranted names what the token has as well.
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
		c.Sessions = newMemory(0, c.Now)
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
	c.Limits = c.Limits.withDefaults()
	if c.Limiter == nil {
		c.Limiter = newRates(c.Limits, c.Now)
	}
	if c.ClockSkew == 0 {
		c.ClockSkew = defaultSkew
	}
	if c.MaxBodyBytes == 0 {
		c.MaxBodyBytes = 4 << 20
	}
	if c.Bodies == nil {
		c.Bodies = NewBodies(max(defaultBodies, 8*c.MaxBodyBytes))
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}
