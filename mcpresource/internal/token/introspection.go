package token

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/issuer"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/logged"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// IntrospectionConfig configures a validator that introspects each token at the authorization
// server (RFC 7662). Issuer, ClientID and ClientSecret are required.
type IntrospectionConfig struct {
	Issuer   string // the issuer of the tokens; used for iss if the response has none
	Endpoint string // discovered if empty
	// ClientID and ClientSecret are this resource server's own credentials, sent with HTTP Basic.
	// Do not reuse those of a client that users sign in with.
	ClientID, ClientSecret string
	// CacheTTL is how long a response is cached, and so how long a revoked token is still accepted.
	// Default: 5 seconds. Streams are validated every 5 seconds, so a revocation takes effect
	// within 10. Negative: no cache.
	CacheTTL   time.Duration
	HTTPClient *http.Client
	Now        func() time.Time
}

const (
	IntrospectionCache = 5 * time.Second
	negativeCache      = 10 * time.Second
	introspectionSize  = 4096
	negativeSize       = 512
)

// NewIntrospectionValidator returns a validator for opaque or JWT access tokens. A revocation takes
// effect within CacheTTL; for the same time, cached tokens are accepted during an outage.
func NewIntrospectionValidator(c IntrospectionConfig) (Validator, error) {
	endpoint, err := issuer.NewEndpoint(issuer.EndpointConfig{
		Name:         "introspection endpoint",
		Issuer:       c.Issuer,
		Location:     c.Endpoint,
		Locate:       func(m issuer.Metadata) string { return m.Introspection },
		ClientID:     c.ClientID,
		ClientSecret: c.ClientSecret,
		Client:       c.HTTPClient,
		Timeout:      issuer.FetchTimeout,
	})
	if err != nil {
		return nil, fmt.Errorf("mcpresource: %w", err)
	}
	if c.CacheTTL == 0 {
		c.CacheTTL = IntrospectionCache
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	size, refused := introspectionSize, negativeSize
	if c.CacheTTL < 0 {
		size, refused = -1, -1
	}
	return &introspector{
		c:        c,
		endpoint: endpoint,
		seen:     newTokenCache(size, c.Now),
		refused:  newTokenCache(refused, c.Now),
	}, nil
}

type introspector struct {
	c        IntrospectionConfig
	endpoint *issuer.Endpoint
	seen     *tokenCache
	refused  *tokenCache // separate, so that invalid tokens cannot evict valid ones
	flight   singleflight.Group
}

// Validate implements Validator. Concurrent requests with the same token share one introspection.
func (v *introspector) Validate(ctx context.Context, c Credential) (*Principal, error) {
	if e, ok := v.seen.lookup(c.Token); ok {
		return e.principal, nil
	}
	if _, ok := v.refused.lookup(c.Token); ok {
		return nil, Invalid("not active")
	}
	if len(c.Token) > issuer.MaxToken {
		return nil, Invalid("too long")
	}
	if iss := issuer.Claimed(c.Token); iss != "" && iss != v.c.Issuer {
		// only its issuer should see the token
		return nil, Invalid(logged.Unexpected("issued by another server: iss is", iss, v.c.Issuer))
	}
	p, err, _ := v.flight.Do(c.Token, func() (any, error) {
		if e, ok := v.seen.lookup(c.Token); ok { // by a request that ended since the first lookup
			return e.principal, nil
		}
		return v.ask(context.WithoutCancel(ctx), c.Token)
	})
	if err != nil {
		return nil, err
	}
	return p.(*Principal), nil
}

func (v *introspector) ask(ctx context.Context, token string) (*Principal, error) {
	status, body, err := v.endpoint.Post(ctx, url.Values{"token": {token}, "token_type_hint": {"access_token"}})
	switch {
	case err != nil:
		return nil, unavailable(err)
	case status != http.StatusOK:
		return nil, unavailable(fmt.Errorf("introspection answered %d", status))
	}
	var answer introspectionAnswer
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, unavailable(err)
	}
	now := v.c.Now()
	p, err := answer.principal(v.c.Issuer, body)
	if !answer.Active || !isAccess(answer.TokenType) || err != nil {
		v.remember(token, cached{until: now.Add(min(negativeCache, max(v.c.CacheTTL, 0)))})
		return nil, errors.Join(Invalid("not active, or no access token"), err)
	}
	until := now.Add(v.c.CacheTTL)
	if !p.ExpiresAt.IsZero() && p.ExpiresAt.Before(until) {
		until = p.ExpiresAt
	}
	v.remember(token, cached{principal: p, until: until})
	return p, nil
}

func (v *introspector) remember(token string, e cached) {
	if e.principal == nil {
		v.refused.put(token, e)
		return
	}
	v.seen.put(token, e)
}

// introspectionAnswer also accepts responses of other servers, where aud may be an array.
type introspectionAnswer struct {
	Active    bool            `json:"active"`
	Scope     issuer.Scopes   `json:"scope"`
	ClientID  string          `json:"client_id"`
	TokenType string          `json:"token_type"`
	Expires   json.Number     `json:"exp"`
	IssuedAt  json.Number     `json:"iat"`
	Subject   string          `json:"sub"`
	Audience  issuer.Audience `json:"aud"`
	Issuer    string          `json:"iss"`
	TokenID   string          `json:"jti"`

	Confirmation json.RawMessage `json:"cnf"`
	Act          json.RawMessage `json:"act"`
	ApproveTools json.RawMessage `json:"approve_tools"`
}

// isAccess reports whether tokenType belongs to an access token. Servers also answer for refresh
// tokens (RFC 7662 §2.1), some with a different type.
func isAccess(tokenType string) bool {
	return tokenType == "" || strings.EqualFold(tokenType, "Bearer") || strings.EqualFold(tokenType, "DPoP")
}

func (a introspectionAnswer) principal(iss string, claims []byte) (*Principal, error) {
	thumbprint, err := boundTo(a.Confirmation)
	if err != nil || thumbprint == "" && strings.EqualFold(a.TokenType, "DPoP") {
		return nil, Invalid("bound to what cannot be checked")
	}
	switch a.Issuer {
	case "":
		a.Issuer = iss
	case iss:
	default: // an issuer must not vouch for users of another
		return nil, Invalid(logged.Unexpected("issued by another server: iss is", a.Issuer, iss))
	}
	p := &Principal{
		Issuer: a.Issuer, Subject: a.Subject, ClientID: a.ClientID, TokenID: a.TokenID, Scopes: oauth.Scopes(a.Scope),
		Audience: a.Audience, ExpiresAt: issuer.NumericDate(a.Expires), IssuedAt: issuer.NumericDate(a.IssuedAt),
		Thumbprint: thumbprint, Claims: claims,
	}
	p.setApprovals(a.ApproveTools)
	return p, p.setActors(a.Act)
}
