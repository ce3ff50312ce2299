package mcpresource

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

	"github.com/mcp-authd/mcp-authd/oauth"
)

// JWTConfig configures a validator of RFC 9068 access tokens. Issuer is required.
type JWTConfig struct {
	Issuer  string // the issuer identifier; iss must be this very string
	JWKSURL string // where its keys are; found by discovery when empty
	// Algorithms are the accepted signature algorithms. Default: ES256, EdDSA, RS256,
	// PS256. "none" and HMAC are never accepted.
	Algorithms []string
	// InsecureAllowUntyped accepts a "typ" other than at+jwt, for authorization
	// servers that do not follow RFC 9068. An ID token may then pass for an access
	// token of the same audience.
	InsecureAllowUntyped bool
	// CacheSize bounds how many validated tokens are remembered until they expire, so
	// that the signature of a token is checked once. Default: 4096; negative: none.
	CacheSize int
	// RequireStatus refuses tokens without a place in a status list: those that cannot be
	// revoked before they expire.
	RequireStatus bool
	// InsecureIgnoreStatus accepts tokens whatever the status list says, so that a revoked
	// one opens everything until it expires.
	InsecureIgnoreStatus bool
	// StatusStale bounds how long past its ttl a status list counts that cannot be read
	// again, and never beyond its own end. Then tokens cannot be judged (503). Default: 5
	// minutes; negative: not at all.
	StatusStale time.Duration

	ClockSkew  time.Duration    // default 30 seconds
	HTTPClient *http.Client     // default: 5 seconds, no redirects
	Now        func() time.Time // default time.Now
	Logger     *slog.Logger     // default: discard
}

// NewJWTValidator returns a validator that checks tokens by the published keys of
// their issuer. The keys are read when the first token comes.
func NewJWTValidator(c JWTConfig) (Validator, error) {
	if err := checkEndpoint(c.Issuer); err != nil {
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
		c.ClockSkew = defaultSkew
	}
	if c.CacheSize == 0 {
		c.CacheSize = 4096
	}
	if c.StatusStale == 0 {
		c.StatusStale = statusStale
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
	client := defaultClient(c.HTTPClient)
	v.keys = &keySet{issuer: c.Issuer, location: c.JWKSURL, client: client, now: c.Now, log: c.Logger}
	v.status = &statusLists{
		issuer: c.Issuer, client: client, algorithms: v.algorithms, verify: v.verify, skew: c.ClockSkew, stale: max(c.StatusStale, 0),
		now: c.Now, log: c.Logger, pollers: map[string]*statusPoller{},
	}
	return v, nil
}

// Discover returns a JWT validator for an issuer after reading its metadata, so that
// a wrong issuer shows at the start, and in New a resource or scope that it does not know: if
// it says which it does know in "protected_resource_scopes", as mcp-authd does. client may be
// nil.
func Discover(ctx context.Context, issuer string, client *http.Client) (Validator, error) {
	m, err := discover(ctx, defaultClient(client), issuer)
	if err != nil {
		return nil, fmt.Errorf("mcpresource: %w", err)
	}
	if m.JWKSURI == "" {
		return nil, fmt.Errorf("mcpresource: issuer %q publishes no keys; use NewIntrospectionValidator", issuer)
	}
	v, err := NewJWTValidator(JWTConfig{Issuer: issuer, HTTPClient: client})
	if err != nil {
		return nil, err
	}
	v.(*jwtValidator).issuer = m
	return v, nil
}

// ResourceScopes implements Catalogue, by what Discover has read.
func (v *jwtValidator) ResourceScopes(_ context.Context, resource string) ([]string, bool, error) {
	return v.issuer.scopesOf(resource)
}

type jwtValidator struct {
	c          JWTConfig
	algorithms []jose.SignatureAlgorithm
	keys       *keySet
	status     *statusLists
	seen       *tokenCache
	issuer     serverMetadata // the zero value unless Discover has read it
}

const (
	defaultSkew = 30 * time.Second
	maxToken    = 16 << 10 // bytes
)

// tokenClaims are the claims that decide (RFC 9068 §2.2).
type tokenClaims struct {
	Issuer    string      `json:"iss"`
	Subject   string      `json:"sub"`
	Audience  audience    `json:"aud"`
	ClientID  string      `json:"client_id"`
	TokenID   string      `json:"jti"`
	Scope     scopeClaim  `json:"scope"`
	Scp       scopeClaim  `json:"scp"`
	Expires   json.Number `json:"exp"`
	NotBefore json.Number `json:"nbf"`
	IssuedAt  json.Number `json:"iat"`

	Confirmation json.RawMessage `json:"cnf"`
	Status       json.RawMessage `json:"status"`
}

// audience is a string or an array of strings (RFC 7519 §4.1.3).
type audience []string

// UnmarshalJSON implements json.Unmarshaler.
func (a *audience) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		*a = make(audience, 1)
		return json.Unmarshal(b, &(*a)[0])
	}
	return json.Unmarshal(b, (*[]string)(a))
}

// scopeClaim is a space-delimited string, or the array that some servers send.
type scopeClaim oauth.Scopes

// UnmarshalJSON implements json.Unmarshaler.
func (s *scopeClaim) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		var list []string
		err := json.Unmarshal(b, &list)
		*s = scopeClaim(oauth.ParseScopes(strings.Join(list, " ")))
		return err
	}
	var one string
	err := json.Unmarshal(b, &one)
	*s = scopeClaim(oauth.ParseScopes(one))
	return err
}

// Validate implements Validator. The cheap checks of header and claims come before
// the key is looked up, the signature before anything is believed, and the status last.
// A token that is remembered has passed all but what may change: key and status.
func (v *jwtValidator) Validate(ctx context.Context, c Credential) (*Principal, error) {
	if e, ok := v.seen.lookup(c.Token); ok {
		if err := v.published(ctx, e.signed); err != nil {
			return nil, err
		}
		return e.principal.unrevoked(ctx)
	}
	if len(c.Token) > maxToken {
		return nil, invalid("too long")
	}
	jws, err := jose.ParseSignedCompact(c.Token, v.algorithms)
	if err != nil {
		return nil, invalid("not a signed JWT of an accepted algorithm")
	}
	if !v.c.InsecureAllowUntyped && !hasType(jws, oauth.AccessTokenType) {
		return nil, invalid("not an access token") // RFC 9068 §4, RS-42
	}
	p, err := v.principal(jws.UnsafePayloadWithoutVerification())
	if err != nil {
		return nil, err
	}
	_, by, err := v.verify(ctx, jws)
	if err != nil {
		return nil, err
	}
	if p.status != nil {
		p.status.signed = func(ctx context.Context) error { return v.published(ctx, by) }
	}
	v.seen.put(c.Token, cached{p, p.ExpiresAt, by})
	return p.unrevoked(ctx)
}

// signer says which key has signed something.
type signer struct {
	kid   string // as the header names it, maybe not at all
	print string // the thumbprint, since another key may have the name one day
}

// verify checks a signature by the keys of the issuer and returns what is signed, and by
// which.
func (v *jwtValidator) verify(ctx context.Context, jws *jose.JSONWebSignature) ([]byte, signer, error) {
	h := jws.Signatures[0].Protected
	key, err := v.key(ctx, h.KeyID)
	switch {
	case err != nil:
		return nil, signer{}, err
	case key.Algorithm != "" && key.Algorithm != h.Algorithm:
		return nil, signer{}, invalid("the key is for another algorithm")
	}
	payload, err := jws.Verify(key.JSONWebKey)
	if err != nil {
		return nil, signer{}, invalid("the signature is wrong")
	}
	return payload, signer{h.KeyID, key.print}, nil
}

// published returns nil while the issuer stands by a key: whoever stole it chooses when
// its tokens expire.
func (v *jwtValidator) published(ctx context.Context, s signer) error {
	key, err := v.key(ctx, s.kid)
	if err == nil && key.print != s.print {
		err = invalid("signed by a key that another one has replaced")
	}
	return err
}

// key finds a key of the issuer.
func (v *jwtValidator) key(ctx context.Context, kid string) (publicKey, error) {
	key, err := v.keys.key(ctx, kid)
	if errors.Is(err, errNoKey) {
		err = invalid("signed by an unknown key")
	}
	return key, err
}

// unrevoked returns p unless its issuer has revoked it.
func (p *Principal) unrevoked(ctx context.Context) (*Principal, error) {
	if p.status != nil {
		if err := p.status.check(ctx); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// hasType compares the media type in the header, whose "application/" may be left out
// (RFC 7515 §4.1.9).
func hasType(jws *jose.JSONWebSignature, want string) bool {
	typ, _ := jws.Signatures[0].Protected.ExtraHeaders[jose.HeaderType].(string)
	return strings.EqualFold(strings.TrimPrefix(strings.ToLower(typ), "application/"), want)
}

func (v *jwtValidator) principal(payload []byte) (*Principal, error) {
	var c tokenClaims
	if err := json.Unmarshal(payload, &c); err != nil {
		return nil, invalid("the claims cannot be read")
	}
	p := &Principal{
		Issuer: c.Issuer, Subject: c.Subject, ClientID: c.ClientID, TokenID: c.TokenID,
		Scopes: oauth.Scopes(c.Scope).Union(oauth.Scopes(c.Scp)), Audience: c.Audience,
		ExpiresAt: numeric(c.Expires), IssuedAt: numeric(c.IssuedAt), Claims: slices.Clone(payload),
	}
	now := v.c.Now()
	switch {
	case c.Issuer != v.c.Issuer: // RFC 9068 §4, RS-40
		return nil, invalid("issued by another server")
	case p.ExpiresAt.IsZero() || !now.Before(p.ExpiresAt.Add(v.c.ClockSkew)):
		return nil, invalid("expired") // RFC 9068 §4, RS-41
	case numeric(c.NotBefore).After(now.Add(v.c.ClockSkew)) || p.IssuedAt.After(now.Add(v.c.ClockSkew)):
		return nil, invalid("not valid yet")
	case c.Subject == "":
		return nil, invalid("no subject")
	}
	var err error
	if p.Thumbprint, err = boundTo(c.Confirmation); err != nil {
		return nil, err
	}
	p.status, err = v.statusRef(c.Status, p.IssuedAt)
	return p, err
}

// numeric reads a NumericDate (RFC 7519 §2). Anything else counts as absent.
func numeric(n json.Number) time.Time {
	f, err := n.Float64()
	if err != nil || f <= 0 || f > 1<<40 {
		return time.Time{}
	}
	return time.Unix(int64(f), 0)
}

func invalid(why string) error { return fmt.Errorf("%w: %s", ErrInvalidToken, why) }
