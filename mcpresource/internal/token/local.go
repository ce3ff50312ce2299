package token

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Introspector introspects tokens. authserver.Server implements it.
type Introspector interface {
	Introspect(ctx context.Context, token string) (oauth.Introspection, error)
}

// Decisions receives the decisions of a guard, for the operator of the authorization server. With a
// reference they find the reason of a refusal, and they see whether a connection attempt reached a
// tool. The methods must not block. authserver.Server implements it, and Reporter does in another
// process.
type Decisions interface {
	// Refused receives a request that is about to get 401 or 403. It returns a reference of letters
	// and digits for this request, or "". The client gets it in X-Request-Id and in the body.
	Refused(r *http.Request, d oauth.Decision) (reference string)
	// LetThrough receives the first allowed request of a grant, and its first tool call, unless
	// this process has seen one in the last hour.
	LetThrough(ctx context.Context, d oauth.Decision)
}

// Readings are Decisions that also receive reads of a resource's RFC 9728 document: the first step
// of most attempts. authserver.Server implements it. Read must not block.
type Readings interface {
	Read(r *http.Request, resource string)
}

// Catalogue lists the resources and scopes of an authorization server. If the Validator of a Config
// implements it, New checks the guard's scopes. A required scope that the authorization server does
// not know is left out of every token, so clients would sign in again without end.
type Catalogue interface {
	// ResourceScopes returns every scope that a token for the resource can have. known is false if
	// no token can be issued for it. The error means that the answer is not available now or, if it
	// wraps errors.ErrUnsupported, never.
	ResourceScopes(ctx context.Context, resource string) (scopes []string, known bool, err error)
}

// Local returns a validator that uses an authorization server in the same process: without network
// requests, and with immediate effect of revocations. If i implements Catalogue, as
// authserver.Server does, New detects unknown resources and scopes. If i implements Decisions, as
// that does, it receives them. If i has the method Revoked of authserver.Server, a revocation also
// ends calls that outlive their token.
func Local(i Introspector) Validator { return local{i} }

type local struct{ Introspector }

// IntrospectorOf returns the argument of Local, or nil for another validator.
func IntrospectorOf(v Validator) Introspector {
	l, _ := v.(local)
	return l.Introspector
}

// Validate implements Validator.
func (l local) Validate(ctx context.Context, c Credential) (*Principal, error) {
	answer, err := l.Introspect(ctx, c.Token)
	if err != nil {
		return nil, errors.Join(ErrUnavailable, err)
	}
	p, err := principalOf(answer)
	if to, ok := l.Introspector.(revoker); ok && err == nil {
		p.revoked = func(ctx context.Context) error { return revokedBy(ctx, to, answer) }
	}
	return p, err
}

// revoker is an Introspector that can tell whether expired tokens are revoked. authserver.Server
// implements it.
type revoker interface {
	Revoked(ctx context.Context, of oauth.Introspection) (bool, error)
}

// revokedBy returns an error if a token is revoked or if that is unknown.
func revokedBy(ctx context.Context, to revoker, of oauth.Introspection) error {
	switch revoked, err := to.Revoked(ctx, of); {
	case err != nil:
		return unavailable(err)
	case revoked:
		return errRevoked
	}
	return nil
}

// Refused implements Decisions, if the authorization server does.
func (l local) Refused(r *http.Request, d oauth.Decision) string {
	if to, ok := l.Introspector.(Decisions); ok {
		return to.Refused(r, d)
	}
	return ""
}

// LetThrough implements Decisions, if the authorization server does.
func (l local) LetThrough(ctx context.Context, d oauth.Decision) {
	if to, ok := l.Introspector.(Decisions); ok {
		to.LetThrough(ctx, d)
	}
}

// Read implements Readings, if the authorization server does.
func (l local) Read(r *http.Request, resource string) {
	if to, ok := l.Introspector.(Readings); ok {
		to.Read(r, resource)
	}
}

// ResourceScopes implements Catalogue, if the authorization server does.
func (l local) ResourceScopes(ctx context.Context, resource string) ([]string, bool, error) {
	if c, ok := l.Introspector.(Catalogue); ok {
		return c.ResourceScopes(ctx, resource)
	}
	return nil, false, errors.ErrUnsupported
}

// principalOf converts an introspection to a Principal. It returns ErrInvalidToken for inactive
// tokens and tokens that are not access tokens.
func principalOf(a oauth.Introspection) (*Principal, error) {
	if !a.Active || !isAccess(a.TokenType) {
		return nil, ErrInvalidToken
	}
	var thumbprint string
	switch {
	case a.Confirmation != nil && a.Confirmation.Thumbprint != "":
		thumbprint = a.Confirmation.Thumbprint
	case a.Confirmation != nil || strings.EqualFold(a.TokenType, "DPoP"):
		return nil, Invalid("bound to what cannot be checked")
	}
	claims, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	p := &Principal{
		Issuer: a.Issuer, Subject: a.Subject, ClientID: a.ClientID, TokenID: a.TokenID,
		Thumbprint: thumbprint, Scopes: oauth.ParseScopes(a.Scope), Audience: []string{a.Audience},
		ExpiresAt: unix(a.Expires), IssuedAt: unix(a.IssuedAt), Claims: claims,
		grantID: a.GrantID, actors: a.Act.Chain(), actorsKnown: true,
		approve: a.ApproveTools, approveKnown: true,
	}
	return p, nil
}

func unix(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}
