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
	// Aliases are more public URLs of the endpoint, such as "https://mcp.example.com/mcp@work", so that
	// one client can connect as several people: clients keep their tokens by URL. Each is a resource
	// identifier of its own, with its own metadata and challenge, and the required audience of tokens
	// that are presented there: a token for one URL is refused at the others. They share everything
	// else. An alias has the origin of Resource and another path, without escapes or a query
	// (oauth.CanonicalAlias); what stands before the guard must leave the path as it is. The
	// authorization server has to know each of them.
	Aliases []string
	// AuthorizationServers are the issuers whose tokens are accepted, and published.
	AuthorizationServers []string
	Validator            Validator
	// OriginAudience accepts tokens for the origin of Resource as well, such as
	// "https://mcp.example.com": for an authorization server that knows this MCP server by that
	// name. Such tokens are valid at every other server on the origin that accepts it too (RFC 8707
	// §2). mcp-authd does not need this: a client that asks for the origin gets a token for the
	// resource.
	OriginAudience bool
	// Policy says what operations need. Default: any valid token may do anything.
	Policy Policy
	// Check looks at the object of an operation once the caller has the scopes for it: a scope says
	// what a caller may do, not to whose things. An error refuses the request (403), or, if it
	// wraps ErrUnavailable, asks the client to try later (503); its text goes only to the log.
	Check func(ctx context.Context, p *Principal, op Operation) error
	// FirstScopes are the scopes that the challenge names to a client without a valid token (401).
	// Default: the Base of Rules.
	FirstScopes []string
	// StepUp says which scopes the challenge names to a client that lacks one (403).
	StepUp StepUp
	// StructuredDenials puts data.authorization into the body of a 403, as SEP-2643 drafts it, for clients that
	// show why: beside the challenge, which decides. It may change with the draft.
	StructuredDenials bool
	Metadata          Metadata
	// Origins are the web origins that may call as well as the resource's own, such as
	// "https://app.example.com". A request without Origin is not from a browser. All other origins
	// are refused, which stops other pages, and names that an attacker binds to this address.
	Origins []string
	// Hosts are the Host values that are accepted as well as the resource's own; when the
	// resource is on loopback, every loopback name with any port is.
	Hosts []string
	// CORS answers the preflights of permitted origins and lets them read responses.
	CORS bool
	// DPoP offers tokens that are bound to a key. Such a token is checked even without it.
	DPoP   *DPoP
	Limits Limits // the zero value has limits that ordinary clients never reach
	// Limiter decides instead of Limits.Calls and Limits.Tools, which then have to be left out: it
	// is for replicas that share a count: see NewLimiter. The other limits hold beside it.
	Limiter  Limiter
	Sessions SessionBinder // default: bounded, in memory
	// SessionOwner says whom a session belongs to. Default: the person.
	SessionOwner SessionOwner
	// MaxSessions bounds the sessions of one person that were used in the last half hour. Default:
	// 500, because people have many applications, and few of those end their sessions; negative:
	// any number.
	MaxSessions int
	// MaxAnonymousSessions bounds those that a public initialize has opened in the same time and
	// that no caller with a token has used. Default: 1,000; negative: any number.
	MaxAnonymousSessions int
	// Decisions takes what is refused with 401 or 403, and gives it the reference that the client is told.
	// Default: the Validator if it is one, as Local is for an authserver.Server.
	Decisions Decisions
	// Clearances asks the authorization server for the permission of a person, which Rules.Clearances or another Policy
	// may demand. The caller's token is shown to it. Default: the Validator if it is one, as Local is for an
	// authserver.Server. Without one, calls that need clearance get 503.
	Clearances Clearances
	// Audit is called once for each HTTP request, when the guard has decided: also for one that is
	// refused before its call is read, as for a bad token or Origin. It says who got in; Calls says
	// what they did then. It must not block.
	Audit func(Event)
	// Calls is called for each call in a message when it has ended, or was refused: what was done,
	// by whom, how long it took and how it ended. It must not block. The context is that of the
	// request, and may have ended. Default: LogCalls(Logger).
	Calls func(context.Context, CallEvent)
	// CallArguments puts the arguments into CallEvent, with any personal data in them.
	CallArguments bool
	// Tracer follows requests and calls, for traces; otelmcp.New makes one. Default: none.
	Tracer Tracer
	Now    func() time.Time // default time.Now
	// ClockSkew is allowed between this clock and the issuer's. Default: 30 seconds.
	ClockSkew time.Duration
	// MaxBodyBytes bounds the body of a request. Default: 4 MiB.
	MaxBodyBytes int64
	// Bodies bounds the memory that the bodies of all requests take together. Beyond it, requests
	// get 503. Default: 128 MiB for this guard, or eight times MaxBodyBytes if that is more.
	Bodies *Bodies
	// Logger gets a line for each refused request with the reason and the expected value, but never a token;
	// refused calls have theirs from Calls. It is limited to one line a second for each Outcome, after a first
	// twenty. Default: discard.
	Logger *slog.Logger
}

// Metadata adjusts the RFC 9728 document.
type Metadata struct {
	Name, Documentation, Policy, Terms string
	// ScopesSupported are the scopes that clients ask for first; many ask for all of them. Default:
	// FirstScopes. offline_access never belongs here.
	ScopesSupported []string
	// PathOnly leaves out the document at the root of the host, which is right where
	// several MCP servers share it.
	PathOnly bool
}

// StepUp says which scopes the challenge of a 403 names. In each case they are all scopes that the
// operations of the message need, so that one more sign-in is enough.
type StepUp int

const (
	// StepUpByRevision is StepUpOperation for clients of 2026-07-28 and later, which add the named
	// scopes to those that they have, and StepUpGranted for older ones, of which many ask for the
	// named scopes alone and would lose the rest.
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
	if c.Decisions == nil {
		c.Decisions, _ = c.Validator.(Decisions)
	}
	if c.Clearances == nil {
		c.Clearances = clearancesOf(c.Validator)
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
