// Package token is about access tokens: it validates them, and describes their callers.
package token

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
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
	// approve is the claim approve_tools, if approveKnown.
	approve      []string
	approveKnown bool

	proof *Reading // of Claims; nil if no rule needs it

	status *statuslist.Place           // the entry in its issuer's status list, or nil
	signed func(context.Context) error // for JWTs: nil while the token's key is valid
	// revoked returns an error if the token is revoked, even after it expired. Nil if that cannot
	// be determined.
	revoked   func(context.Context) error
	presented *presented // for Broker; only set in a guarded request
	attached  Attachment // of the guard; nil outside one
}

// Attachment is a guard's record of the request of a caller.
type Attachment interface {
	// Within returns ctx with the request's call in it, for a tracer.
	Within(ctx context.Context) context.Context
}

// Attach records the request of a caller.
func Attach(p *Principal, a Attachment) { p.attached = a }

// AttachmentOf returns the record of the caller's request, or nil.
func AttachmentOf(p *Principal) Attachment {
	if p == nil {
		return nil
	}
	return p.attached
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
	if p != nil && p.attached != nil {
		ctx = p.attached.Within(ctx)
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

// Proof holds the claims about the user's authentication. They are read once per request, because a
// list checks each of its entries.
type Proof struct {
	AuthTime int64  `json:"auth_time"`
	ACR      string `json:"acr"`
}

// Reading is a proof that is read on first use. A nil reading reads it each time.
type Reading struct {
	once  sync.Once
	proof Proof
	ok    bool
}

func (r *Reading) of(p *Principal) (Proof, bool) {
	if r == nil {
		r = &Reading{}
	}
	r.once.Do(func() { r.ok = json.Unmarshal(p.Claims, &r.proof) == nil })
	return r.proof, r.ok
}

// ProofOf returns the claims of p about the user's authentication.
func ProofOf(p *Principal) (Proof, bool) { return p.proof.of(p) }

// KeepProof makes p read its claims into r once. A nil r reads them each time.
func KeepProof(p *Principal, r *Reading) { p.proof = r }

// Renewed returns p with the scopes, expiry and claims from a later validation of its token.
func Renewed(p, now *Principal) *Principal {
	own := *p
	own.Scopes, own.ExpiresAt, own.Claims = now.Scopes, now.ExpiresAt, now.Claims
	own.actors, own.actorsKnown, own.proof = now.actors, now.actorsKnown, nil
	own.approve, own.approveKnown = now.approve, now.approveKnown
	return &own
}

// PresentedToken returns the token that p was validated by, or "" outside a guarded request.
func PresentedToken(p *Principal) string {
	if p == nil || p.presented == nil {
		return ""
	}
	return p.presented.token
}

// presented is the caller's token. It is behind a pointer in an unexported field, so that printing
// a principal or a context does not show it.
type presented struct{ token string }

// WithCredential returns a copy of p with the token, for use by a Broker. A copy is needed because
// Principals are shared between requests.
func WithCredential(p *Principal, c Credential) *Principal {
	if p == nil {
		return nil
	}
	own := *p
	own.presented = &presented{c.Token}
	return &own
}
