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

// Principal is the verified caller of one request.
type Principal struct {
	Issuer    string       // the authorization server that says so
	Subject   string       // the person, or the client itself for a machine
	ClientID  string       // the application that calls
	TokenID   string       // jti, for logs; "" when the token has none
	Scopes    oauth.Scopes // what the token allows
	Audience  []string     // the resources the token is for
	IssuedAt  time.Time    // zero when the token does not say
	ExpiresAt time.Time
	// Thumbprint is that of the key the token is bound to (RFC 7638, base64url), for which
	// the guard demands a proof; "" for a bearer token.
	Thumbprint string
	Claims     json.RawMessage // everything the token or the introspection says, as JSON

	grantID     string        // what Claims say, when it is known without reading them
	actors      []oauth.Actor // the same of act, if actorsKnown
	actorsKnown bool

	proof *reading // of Claims; nil where no rule asks for it

	status *statuslist.Place           // where its issuer says that it is revoked, nil for nowhere
	signed func(context.Context) error // nil while the key of the token is good; of a JWT alone
	// revoked returns an error when the token is revoked, whether or not it has expired. Nil when that cannot be told.
	revoked func(context.Context) error
	// for Broker; nil but in a request that the guard has let through
	presented *presented
	again     func(context.Context) (*Principal, error) // judges the token once more; nil outside a guard
	openedBy  string                                    // see Event
	at        *address                                  // where the request came; nil outside a guard
	traced    *traced                                   // the calls of the request, nil without a Tracer
	reported  *atomic.Bool                              // whether the handler reports the calls of the request
	cleared   *cleared                                  // the call that a person has allowed, nil for none
}

// Key identifies the caller together with the application: the same person through another
// one, or by another issuer, has another key.
func (p *Principal) Key() string {
	if p == nil {
		return ""
	}
	return p.Issuer + "\x00" + p.Subject + "\x00" + p.ClientID
}

// Person identifies who calls, whichever application they use: issuer and subject, or the
// client of a token that names no subject. Limits and sessions go by it, because
// applications register themselves.
func (p *Principal) Person() string {
	switch {
	case p == nil:
		return ""
	case p.Subject == "":
		return p.Issuer + "\x00\x00" + p.ClientID
	}
	return p.Issuer + "\x00" + p.Subject
}

// GrantID returns the id of the grant that the token was issued for: one approval of a person, with
// all tokens that the client got for it. It is the claim gid of mcp-authd, "" when the token has none.
// Other issuers may use gid for something else: look at Issuer first.
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

// NewContext returns a context that carries p; nil takes any earlier one away. The
// guard calls it for every request, and adapters for calls inside a session. What is done in it is done
// on behalf of the call that p was verified for, to a Tracer as well.
func NewContext(ctx context.Context, p *Principal) context.Context {
	if p != nil {
		ctx = p.traced.within(ctx)
	}
	return context.WithValue(ctx, principalKey{}, p)
}

// FromContext returns the verified caller of the request that ctx belongs to.
func FromContext(ctx context.Context) (*Principal, bool) {
	p, ok := ctx.Value(principalKey{}).(*Principal)
	return p, ok && p != nil
}

// Credential is what a request presents.
type Credential struct {
	Scheme  string        // "Bearer" or "DPoP", as sent
	Token   string        // the credential itself; never log it
	Request *http.Request // for validators that look at more; its body must not be read
}

// Validator judges a credential. It returns an error that wraps ErrInvalidToken for a
// token that is not good (answered 401), and ErrUnavailable when it cannot judge now
// (answered 503); any other error is treated as unavailable, and its text never
// reaches the client. The Guard checks issuer, audience and times itself afterwards.
type Validator interface {
	Validate(ctx context.Context, c Credential) (*Principal, error)
}

// ValidatorFunc is a function that is a Validator.
type ValidatorFunc func(ctx context.Context, c Credential) (*Principal, error)

// Validate calls f.
func (f ValidatorFunc) Validate(ctx context.Context, c Credential) (*Principal, error) {
	return f(ctx, c)
}

// The errors of validators.
var (
	ErrInvalidToken = errors.New("mcpresource: token is not valid")
	ErrUnavailable  = errors.New("mcpresource: token cannot be checked now")
	// ErrNoCaller is returned by Guard.Authorize when there is no verified caller.
	ErrNoCaller = errors.New("mcpresource: no verified caller")
)
