package mcpresource

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/statuslist"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Principal is the verified caller of a request.
type Principal struct {
	Issuer    string       // the authorization server
	Subject   string       // the user, or the client itself for a machine
	ClientID  string       // the application that calls
	TokenID   string       // jti, for logs; "" if the token has none
	Scopes    oauth.Scopes // the token's scopes
	Audience  []string     // the resources the token is for
	IssuedAt  time.Time    // zero if the token does not contain it
	ExpiresAt time.Time
	// Thumbprint is the thumbprint of the key that the token is bound to (RFC 7638, base64url). The
	// guard then requires a proof. It is "" for a bearer token.
	Thumbprint string
	Claims     json.RawMessage // all claims of the token or the introspection, as JSON

	grantID     string        // from Claims, if already known
	actors      []oauth.Actor // from the act claim, if actorsKnown
	actorsKnown bool

	proof *reading // of Claims; nil if no rule needs it

	status *statuslist.Place           // the entry in its issuer's status list, or nil
	signed func(context.Context) error // for JWTs: nil while the token's key is valid
	// revoked returns an error if the token is revoked, even after it expired. Nil if that cannot
	// be determined.
	revoked func(context.Context) error
	// for Broker; only set in a guarded request
	presented *presented
	again     func(context.Context) (*Principal, error) // validates the token again; nil outside a guard
	openedBy  string                                    // see Event
	at        *address                                  // where the request arrived; nil outside a guard
	traced    *traced                                   // of the request's calls; nil without a Tracer
	reported  *atomic.Bool                              // whether the handler reports the request's calls
	cleared   *cleared                                  // the approved call, or nil
}

// Key identifies the caller together with the application: the same user has another key with
// another application or issuer.
func (p *Principal) Key() string {
	if p == nil {
		return ""
	}
	return p.Issuer + "\x00" + p.Subject + "\x00" + p.ClientID
}

// Person identifies the caller independently of the application: by issuer and subject, or by the
// client if the token has no subject. Limits and sessions use it, because applications register
// themselves.
func (p *Principal) Person() string {
	switch {
	case p == nil:
		return ""
	case p.Subject == "":
		return p.Issuer + "\x00\x00" + p.ClientID
	}
	return p.Issuer + "\x00" + p.Subject
}

// GrantID returns the id of the grant that the token was issued for: one consent of a user, with
// all tokens that the client got for it. It is the claim gid of mcp-authd, "" if the token has
// none. Other issuers may use gid for something else: check Issuer first.
func (p *Principal) GrantID() string {
	switch {
	case p == nil:
		return ""
	case p.grantID != "":
		return p.grantID
	}
	var claims struct {
		GrantID string `json:"gid"`
	}
	if json.Unmarshal(p.Claims, &claims) != nil {
		return ""
	}
	return claims.GrantID
}

type principalKey struct{}

// NewContext returns a context with p as the caller; nil removes an earlier caller. The guard calls
// it for every request, and adapters for calls inside a session. Work in the context counts as part
// of the call that p was verified for, also for a Tracer.
func NewContext(ctx context.Context, p *Principal) context.Context {
	if p != nil {
		ctx = p.traced.within(ctx)
	}
	return context.WithValue(ctx, principalKey{}, p)
}

// FromContext returns the verified caller of the request of ctx.
func FromContext(ctx context.Context) (*Principal, bool) {
	p, ok := ctx.Value(principalKey{}).(*Principal)
	return p, ok && p != nil
}

// Credential is the credential of a request.
type Credential struct {
	Scheme  string        // "Bearer" or "DPoP", as sent
	Token   string        // the credential itself; never log it
	Request *http.Request // for validators that need more; its body must not be read
}

// Validator validates a credential. It must return an error that wraps ErrInvalidToken for an
// invalid token (401), and ErrUnavailable if it cannot decide now (503). Any other error counts as
// unavailable, and its text is not sent to the client. The Guard checks issuer, audience and times
// itself afterwards.
type Validator interface {
	Validate(ctx context.Context, c Credential) (*Principal, error)
}

// ValidatorFunc is a function that implements Validator.
type ValidatorFunc func(ctx context.Context, c Credential) (*Principal, error)

// Validate calls f.
func (f ValidatorFunc) Validate(ctx context.Context, c Credential) (*Principal, error) {
	return f(ctx, c)
}

// Errors of validators.
var (
	ErrInvalidToken = errors.New("mcpresource: token is not valid")
	ErrUnavailable  = errors.New("mcpresource: token cannot be checked now")
	// ErrNoCaller means that the context has no verified caller, for example in Guard.Authorize.
	ErrNoCaller = errors.New("mcpresource: no verified caller")
)
