package token

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/internal/jwks"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/issuer"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/logged"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/statuslist"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// JWTConfig configures a validator of RFC 9068 access tokens. Issuer is required.
type JWTConfig struct {
	Issuer  string // must equal iss exactly
	JWKSURL string // discovered if empty
	// Algorithms are the accepted signature algorithms. Default: ES256, EdDSA, RS256, PS256. "none"
	// and HMAC are always rejected.
	Algorithms []string
	// InsecureAllowUntyped accepts a "typ" other than at+jwt, for authorization servers that do not
	// follow RFC 9068. Keycloak, Microsoft Entra, Auth0 and Okta follow it only if configured to.
	// With this option, an ID token may pass as an access token of the same audience.
	InsecureAllowUntyped bool
	// CacheSize is the maximum number of validated tokens cached until they expire, so that each
	// signature is verified once. Default: 4096; negative: none.
	CacheSize int
	// RequireStatus rejects tokens without an entry in a status list, which cannot be revoked
	// before they expire.
	RequireStatus bool
	// InsecureIgnoreStatus ignores status lists, so that a revoked token stays valid until it
	// expires.
	InsecureIgnoreStatus bool
	// StatusStale is how long after its ttl a status list still counts if it cannot be fetched
	// again, but never after its own expiry. Then tokens cannot be validated (503). Default: 5
	// minutes; negative: not at all.
	StatusStale time.Duration

	ClockSkew  time.Duration    // default: 30 seconds
	HTTPClient *http.Client     // default: 5 seconds timeout, no redirects
	Now        func() time.Time // default: time.Now
	Logger     *slog.Logger     // default: discard
}

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
	if err := issuer.CheckURL(c.Issuer); err != nil {
		return nil, fmt.Errorf("mcpresource: issuer %w", err)
	}
	if c.RequireStatus && c.InsecureIgnoreStatus {
		return nil, errors.New("mcpresource: RequireStatus and InsecureIgnoreStatus exclude each other")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.InsecureIgnoreStatus {
		c.Logger.Warn("status lists are ignored: revoked tokens are accepted until they expire", "issuer", c.Issuer)
	}
	if c.ClockSkew == 0 {
		c.ClockSkew = DefaultSkew
	}
	if c.CacheSize == 0 {
		c.CacheSize = 4096
	}
	if c.StatusStale == 0 {
		c.StatusStale = defaultStatusStale
	}
	v := &jwtValidator{c: c, seen: newTokenCache(c.CacheSize, c.Now)}
	for _, a := range c.Algorithms {
		if a == "none" || strings.HasPrefix(a, "HS") {
			return nil, fmt.Errorf("mcpresource: algorithm %q is never accepted", a)
		}
		v.algorithms = append(v.algorithms, jose.SignatureAlgorithm(a))
	}
	if v.algorithms == nil {
		v.algorithms = []jose.SignatureAlgorithm{jose.ES256, jose.EdDSA, jose.RS256, jose.PS256}
	}
	client := issuer.Client(c.HTTPClient)
	v.keys = issuer.NewKeys(issuer.KeysConfig{
		Issuer:   c.Issuer,
		Location: c.JWKSURL,
		Client:   client,
		Now:      c.Now,
		Log:      c.Logger,
	})
	v.status = statuslist.New(statuslist.Config{
		Issuer: c.Issuer,
		Client: client,
		Verify: v.verifyTyped,
		Skew:   c.ClockSkew,
		Stale:  max(c.StatusStale, 0),
		Now:    c.Now,
		Log:    c.Logger,
	})
	return v, nil
}

// Discover reads the metadata of an issuer and returns a JWT validator for it, so that a wrong
// issuer is detected at the start. If the metadata has "protected_resource_scopes", as mcp-authd's
// does, New also detects unknown resources and scopes. client may be nil.
func Discover(ctx context.Context, iss string, client *http.Client) (Validator, error) {
	m, err := issuer.Discover(ctx, issuer.Client(client), iss)
	if err != nil {
		return nil, fmt.Errorf("mcpresource: %w", err)
	}
	if m.JWKSURI == "" {
		return nil, fmt.Errorf("mcpresource: issuer %q publishes no keys; use NewIntrospectionValidator", iss)
	}
	v, err := NewJWTValidator(JWTConfig{Issuer: iss, HTTPClient: client})
	if err != nil {
		return nil, err
	}
	v.(*jwtValidator).metadata = m
	return v, nil
}

// ResourceScopes implements Catalogue with the metadata that Discover read.
func (v *jwtValidator) ResourceScopes(_ context.Context, resource string) ([]string, bool, error) {
	return v.metadata.ScopesOf(resource)
}

type jwtValidator struct {
	c          JWTConfig
	algorithms []jose.SignatureAlgorithm
	keys       *issuer.Keys
	status     *statuslist.Lists
	seen       *tokenCache
	metadata   issuer.Metadata // the zero value unless Discover set it
}

const (
	DefaultSkew        = 30 * time.Second
	defaultStatusStale = 5 * time.Minute
)

// tokenClaims holds the claims that are checked (RFC 9068 §2.2).
type tokenClaims struct {
	Issuer    string          `json:"iss"`
	Subject   string          `json:"sub"`
	Audience  issuer.Audience `json:"aud"`
	ClientID  string          `json:"client_id"`
	TokenID   string          `json:"jti"`
	Scope     issuer.Scopes   `json:"scope"`
	Scp       issuer.Scopes   `json:"scp"`
	Expires   json.Number     `json:"exp"`
	NotBefore json.Number     `json:"nbf"`
	IssuedAt  json.Number     `json:"iat"`

	Confirmation json.RawMessage `json:"cnf"`
	Act          json.RawMessage `json:"act"`
	ApproveTools json.RawMessage `json:"approve_tools"`
	Status       json.RawMessage `json:"status"`
}

// Validate implements Validator. It checks header and claims before it looks up the key, and the
// status last. It trusts nothing before the signature is verified. For a cached token it only
// checks what may change: key and status.
func (v *jwtValidator) Validate(ctx context.Context, c Credential) (*Principal, error) {
	now := v.c.Now()
	if e, ok := v.seen.lookupAt(c.Token, now); ok {
		if err := v.published(ctx, e.signed); err != nil {
			return nil, err
		}
		return e.principal.unrevoked(ctx)
	}
	if len(c.Token) > issuer.MaxToken {
		return nil, Invalid("too long")
	}
	jws, err := jose.ParseSignedCompact(c.Token, v.algorithms)
	if err != nil {
		return nil, Invalid("not a signed JWT of an accepted algorithm")
	}
	if !v.c.InsecureAllowUntyped && !issuer.HasType(jws, oauth.AccessTokenType) {
		return nil, Invalid(untyped(jws)) // RFC 9068 §4, RS-42
	}
	p, err := v.principal(jws.UnsafePayloadWithoutVerification())
	if err != nil {
		return nil, err
	}
	_, by, err := v.verify(ctx, jws)
	if err != nil {
		return nil, err
	}
	p.signed = func(ctx context.Context) error { return v.published(ctx, by) }
	v.seen.put(c.Token, cached{p, p.ExpiresAt, by})
	return p.unrevoked(ctx)
}

// untyped describes a token of another type, and names the documentation.
func untyped(jws *jose.JSONWebSignature) string {
	return logged.Unexpected("not an access token: typ is", issuer.Type(jws), oauth.AccessTokenType) +
		". For an authorization server that does not follow RFC 9068, such as Keycloak, Microsoft Entra, Auth0" +
		" and Okta, see JWTConfig.InsecureAllowUntyped and docs/adapters.md, \"Another authorization server\""
}

// signer identifies the key that signed a token.
type signer struct {
	kid   string // from the header, may be empty
	print string // the thumbprint, because a later key may reuse the kid
}

// verifyTyped returns the payload of a JWT of the given media type, such as a status list.
func (v *jwtValidator) verifyTyped(ctx context.Context, token, mediaType string) ([]byte, error) {
	jws, err := jose.ParseSignedCompact(token, v.algorithms)
	if err != nil {
		return nil, errors.New("not a signed JWT of an accepted algorithm")
	}
	if !issuer.HasType(jws, mediaType) {
		return nil, errors.New("a token of another type")
	}
	payload, _, err := v.verify(ctx, jws)
	return payload, err
}

// verify verifies a signature with the keys of the issuer. It returns the payload and the signing
// key.
func (v *jwtValidator) verify(ctx context.Context, jws *jose.JSONWebSignature) ([]byte, signer, error) {
	h := jws.Signatures[0].Protected
	key, err := v.key(ctx, h.KeyID)
	switch {
	case err != nil:
		return nil, signer{}, err
	case key.Algorithm != "" && key.Algorithm != h.Algorithm:
		return nil, signer{}, Invalid("the key is for another algorithm")
	}
	payload, err := jws.Verify(key.JSONWebKey)
	if err != nil {
		return nil, signer{}, Invalid("the signature is wrong")
	}
	return payload, signer{h.KeyID, key.Print}, nil
}

// published returns nil while the issuer publishes the key. It must be checked, because the thief
// of a key can choose any expiry for tokens.
func (v *jwtValidator) published(ctx context.Context, s signer) error {
	key, err := v.key(ctx, s.kid)
	if err == nil && key.Print != s.print {
		err = Invalid("signed by a key that another one has replaced")
	}
	return err
}

func (v *jwtValidator) key(ctx context.Context, kid string) (*issuer.Key, error) {
	key, err := v.keys.Key(ctx, kid)
	switch {
	case errors.Is(err, jwks.ErrNoKey):
		err = Invalid("signed by an unknown key")
	case err != nil:
		err = unavailable(err)
	}
	return key, err
}

// unrevoked returns p, or an error if its issuer has revoked it.
func (p *Principal) unrevoked(ctx context.Context) (*Principal, error) {
	if p.status != nil {
		if err := p.status.Check(ctx); err != nil {
			return nil, statusError(err)
		}
	}
	return p, nil
}

func (v *jwtValidator) principal(payload []byte) (*Principal, error) {
	var c tokenClaims
	if err := json.Unmarshal(payload, &c); err != nil {
		return nil, Invalid("the claims cannot be read")
	}
	p := &Principal{
		Issuer: c.Issuer, Subject: c.Subject, ClientID: c.ClientID, TokenID: c.TokenID,
		Scopes: oauth.Scopes(c.Scope).Union(oauth.Scopes(c.Scp)), Audience: c.Audience,
		ExpiresAt: issuer.NumericDate(c.Expires), IssuedAt: issuer.NumericDate(c.IssuedAt),
		Claims: slices.Clone(payload),
	}
	now := v.c.Now()
	switch {
	case c.Issuer != v.c.Issuer: // RFC 9068 §4, RS-40
		return nil, Invalid(logged.Unexpected("issued by another server: iss is", c.Issuer, v.c.Issuer))
	case p.ExpiresAt.IsZero() || !now.Before(p.ExpiresAt.Add(v.c.ClockSkew)):
		return nil, Invalid(Expired(p.ExpiresAt, now)) // RFC 9068 §4, RS-41
	case issuer.NumericDate(c.NotBefore).After(now.Add(v.c.ClockSkew)) || p.IssuedAt.After(now.Add(v.c.ClockSkew)):
		return nil, Invalid("not valid yet")
	case c.Subject == "":
		return nil, Invalid("no subject")
	}
	p.setApprovals(c.ApproveTools)
	err := p.setActors(c.Act)
	if err != nil {
		return nil, err
	}
	if p.Thumbprint, err = boundTo(c.Confirmation); err != nil {
		return nil, err
	}
	p.status, err = v.place(c.Status, p.IssuedAt)
	return p, err
}

// place reads the status claim of a token. It returns nil without the claim.
func (v *jwtValidator) place(claim json.RawMessage, issued time.Time) (*statuslist.Place, error) {
	if v.c.InsecureIgnoreStatus {
		return nil, nil
	}
	place, err := v.status.Place(claim, issued)
	switch {
	case err != nil:
		return nil, Invalid(err.Error())
	case place == nil && v.c.RequireStatus:
		return nil, Invalid("it has no place in a status list")
	}
	return place, nil
}

// statusError converts an error of a status list to one of a validator.
func statusError(err error) error {
	if errors.Is(err, statuslist.ErrRevoked) {
		return errRevoked
	}
	return unavailable(err)
}

var errRevoked = Invalid(statuslist.ErrRevoked.Error())

func unavailable(err error) error { return fmt.Errorf("%w: %w", ErrUnavailable, err) }

func Invalid(why string) error { return fmt.Errorf("%w: %s", ErrInvalidToken, why) }

// Expired describes a token's expiry together with the current time.
func Expired(at, now time.Time) string {
	if at.IsZero() {
		return "expired: it has no exp"
	}
	const form = time.RFC3339
	return fmt.Sprintf("expired: exp is %s, and it is %s", at.UTC().Format(form), now.UTC().Format(form))
}

// boundTo reads a cnf claim (RFC 7800 §3.1). A token that is bound to anything but a DPoP key is
// rejected, because that binding cannot be checked. As a bearer token it would be worth more than
// its issuer intended.
func boundTo(claim json.RawMessage) (thumbprint string, err error) {
	if claim == nil || string(claim) == "null" {
		return "", nil
	}
	var members map[string]string
	if json.Unmarshal(claim, &members) != nil || len(members) != 1 || members["jkt"] == "" {
		return "", Invalid("bound to what cannot be checked")
	}
	return members["jkt"], nil
}
