package mcpresource

import (
	"context"
	"net/http"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/token"
)

// Principal is the verified caller of a request.
type Principal = token.Principal

// Credential is the credential of a request.
type Credential = token.Credential

// Validator validates a credential. It must return an error that wraps ErrInvalidToken for an
// invalid token (401), and ErrUnavailable if it cannot decide now (503). Any other error counts as
// unavailable, and its text is not sent to the client. The Guard checks issuer, audience and times
// itself afterwards.
type Validator = token.Validator

// ValidatorFunc is a function that implements Validator.
type ValidatorFunc = token.ValidatorFunc

// Errors of validators.
var (
	ErrInvalidToken = token.ErrInvalidToken
	ErrUnavailable  = token.ErrUnavailable
	// ErrNoCaller means that the context has no verified caller, for example in Guard.Authorize.
	ErrNoCaller = token.ErrNoCaller
)

// NewContext returns a context with p as the caller; nil removes an earlier caller. The guard calls
// it for every request, and adapters for calls inside a session. Work in the context counts as part
// of the call that p was verified for, also for a Tracer.
func NewContext(ctx context.Context, p *Principal) context.Context { return token.NewContext(ctx, p) }

// FromContext returns the verified caller of the request of ctx.
func FromContext(ctx context.Context) (*Principal, bool) { return token.FromContext(ctx) }

// AnyOf returns a validator that accepts a token if one of validators accepts it, such as one for
// each authorization server. They are called in this order, except that a validator with the token
// in its cache is first, so that many issuers cost no more than one. If none accepts the token, the
// error contains all their errors. It wraps ErrUnavailable if one of them could not decide, so that
// an outage does not make clients discard valid tokens.
func AnyOf(validators ...Validator) Validator {
	return token.AnyOf(validators...)
}

// JWTConfig configures a validator of RFC 9068 access tokens. Issuer is required.
type JWTConfig = token.JWTConfig

// NewJWTValidator returns a validator that verifies tokens with the published keys of their issuer.
// The keys are fetched when the first token arrives.
//
// They are fetched again in the background every five minutes, and when a token names an unknown
// key. If that fails, they stay in use for 24 hours. After that, or at once for an unknown key or
// without any keys, the response is 503 with Retry-After. A 401 would make clients discard valid
// tokens and send users to a server that is down. Open streams continue until their token expires,
// or its status list is too old.
//
// A token with a status claim has an entry in a status list of its issuer (OAuth Token Status List,
// draft-ietf-oauth-status-list). Each validation checks it, in 50 nanoseconds. A revocation takes
// effect at most one second after the ttl of the list, which is 7 seconds unless the issuer sets
// another. If the list cannot be fetched, that takes up to StatusStale longer: from then on, such
// tokens get 503. A running request ends when its token is revoked, with a cause that wraps
// [ErrInvalidToken], or [ErrUnavailable] if the status is unavailable. The list must be at the
// origin of the issuer, otherwise the token is rejected. A cache that ignores "Cache-Control:
// max-age=1" delays revocations further.
//
// Tokens without a status claim are valid until they expire, unless RequireStatus is set. To see
// revocations otherwise, use [NewIntrospectionValidator], within CacheTTL, or [Local], at once.
// With them, the token of a stream is validated again every 5 seconds.
func NewJWTValidator(c JWTConfig) (Validator, error) {
	return token.NewJWTValidator(c)
}

// Discover reads the metadata of an issuer and returns a JWT validator for it, so that a wrong
// issuer is detected at the start. If the metadata has "protected_resource_scopes", as mcp-authd's
// does, New also detects unknown resources and scopes. client may be nil.
func Discover(ctx context.Context, iss string, client *http.Client) (Validator, error) {
	return token.Discover(ctx, iss, client)
}

// IntrospectionConfig configures a validator that introspects each token at the authorization
// server (RFC 7662). Issuer, ClientID and ClientSecret are required.
type IntrospectionConfig = token.IntrospectionConfig

// NewIntrospectionValidator returns a validator for opaque or JWT access tokens. A revocation takes
// effect within CacheTTL; for the same time, cached tokens are accepted during an outage.
func NewIntrospectionValidator(c IntrospectionConfig) (Validator, error) {
	return token.NewIntrospectionValidator(c)
}

// Introspector introspects tokens. authserver.Server implements it.
type Introspector = token.Introspector

// Local returns a validator that uses an authorization server in the same process: without network
// requests, and with immediate effect of revocations. If i implements Catalogue, as
// authserver.Server does, New detects unknown resources and scopes. If i implements Decisions, as
// that does, it receives them. If i has the method Revoked of authserver.Server, a revocation also
// ends calls that outlive their token.
func Local(i Introspector) Validator {
	return token.Local(i)
}

// Catalogue lists the resources and scopes of an authorization server. If the Validator of a Config
// implements it, New checks the guard's scopes. A required scope that the authorization server does
// not know is left out of every token, so clients would sign in again without end.
type Catalogue = token.Catalogue

// Decisions receives the decisions of a guard, for the operator of the authorization server. With a
// reference they find the reason of a refusal, and they see whether a connection attempt reached a
// tool. The methods must not block. authserver.Server implements it, and Reporter does in another
// process.
type Decisions = token.Decisions

// Readings are Decisions that also receive reads of a resource's RFC 9728 document: the first step
// of most attempts. authserver.Server implements it. Read must not block.
type Readings = token.Readings
