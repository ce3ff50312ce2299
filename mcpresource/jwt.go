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

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/issuer"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/statuslist"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// JWTConfig configures a validator of RFC 9068 access tokens. Issuer is required.
type JWTConfig struct {
	Issuer  string // the issuer identifier; iss must be this very string
	JWKSURL string // where its keys are; found by discovery when empty
	// Algorithms are the accepted signature algorithms. Default: ES256, EdDSA, RS256,
	// PS256. "none" and HMAC are never accepted.
	Algorithms []string
	// InsecureAllowUntyped accepts a "typ" other than at+jwt, for authorization servers that do not follow RFC
	// 9068. Keycloak, Microsoft Entra, Auth0 and Okta do so only if configured to. With this option, an ID token
	// may pass as an access token of the same audience.
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
//
// They are read again every five minutes, in the background, and when a token names one that is
// unknown. When they cannot be read they serve on for 24 hours. Then, at once for a token by an
// unknown key, and when there were none yet, the answer is 503 with Retry-After: a 401 would make
// clients throw away good tokens and ask people to sign in at a server that is down. Open streams
// go on until their token expires, or its status list is too old.
//
// A token with a status claim names its place in a status list of its issuer (OAuth Token Status
// List, draft-ietf-oauth-status-list), and each validation looks there, at 50 nanoseconds. So a
// revocation is seen after the ttl of the list plus one second at most (7 seconds unless the issuer
// says otherwise), or StatusStale later when the list cannot be read; then such tokens get 503. A
// request under way ends when its token is revoked, with a cause that wraps [ErrInvalidToken], or
// [ErrUnavailable] when its status is out of reach. A list must be at the origin of the issuer, or
// the token is refused. A cache in between that does not heed "Cache-Control: max-age=1" adds the
// time for which it keeps lists.
//
// Tokens without a status claim are good until they expire, unless RequireStatus is set. Other
// ways to see revocations are [NewIntrospectionValidator], within CacheTTL, and [Local], at once;
// with them, the token of a stream is validated again every 5 seconds.
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
		c.ClockSkew = defaultSkew
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

// Discover returns a JWT validator for an issuer after reading its metadata, so that
// a wrong issuer shows at the start, and in New a resource or scope that it does not know: if
// it says which it does know in "protected_resource_scopes", as mcp-authd does. client may be
// nil.
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

// ResourceScopes implements Catalogue, by what Discover has read.
func (v *jwtValidator) ResourceScopes(_ context.Context, resource string) ([]string, bool, error) {
	return v.metadata.ScopesOf(resource)
}

type jwtValidator struct {
	c          JWTConfig
	algorithms []jose.SignatureAlgorithm
	keys       *issuer.Keys
	status     *statuslist.Lists
	seen       *tokenCache
	metadata   issuer.Metadata // the zero value unless Discover has read it
}

const (
	defaultSkew        = 30 * time.Second
	defaultStatusStale = 5 * time.Minute
	maxToken           = 16 << 10 // bytes
)

// tokenClaims are the claims that decide (RFC 9068 §2.2).
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
	Status       json.RawMessage `json:"status"`
}

// Validate implements Validator. The cheap checks of header and claims come before
// the key is looked up, the signature before anything is believed, and the status last.
// A token that is remembered has passed all but what may change: key and status.
func (v *jwtValidator) Validate(ctx context.Context, c Credential) (*Principal, error) {
	now := v.c.Now()
	if e, ok := v.seen.lookupAt(c.Token, now); ok {
		if err := v.published(ctx, e.signed, now); err != nil {
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
	if !v.c.InsecureAllowUntyped && !issuer.HasType(jws, oauth.AccessTokenType) {
		return nil, invalid(untyped(jws)) // RFC 9068 §4, RS-42
	}
	p, err := v.principal(jws.UnsafePayloadWithoutVerification())
	if err != nil {
		return nil, err
	}
	_, by, err := v.verify(ctx, jws)
	if err != nil {
		return nil, err
	}
	p.signed = func(ctx context.Context) error { return v.published(ctx, by, v.c.Now()) }
	v.seen.put(c.Token, cached{p, p.ExpiresAt, by})
	return p.unrevoked(ctx)
}

// untyped describes a token of another type, and where to read what to do about it.
func untyped(jws *jose.JSONWebSignature) string {
	return unexpected("not an access token: typ is", issuer.Type(jws), oauth.AccessTokenType) +
		". For an authorization server that does not follow RFC 9068, such as Keycloak, Microsoft Entra, Auth0" +
		" and Okta, see JWTConfig.InsecureAllowUntyped and docs/adapters.md, \"Another authorization server\""
}

// signer says which key has signed something.
type signer struct {
	kid   string // as the header names it, maybe not at all
	print string // the thumbprint, since another key may have the name one day
}

// verifyTyped returns the payload of a JWT of a media type, such as a status list.
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

// verify checks a signature by the keys of the issuer and returns what is signed, and by
// which.
func (v *jwtValidator) verify(ctx context.Context, jws *jose.JSONWebSignature) ([]byte, signer, error) {
	h := jws.Signatures[0].Protected
	key, err := v.key(ctx, h.KeyID, v.c.Now())
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
	return payload, signer{h.KeyID, key.Print}, nil
}

// published returns nil while the issuer stands by a key: a thief of it chooses when
// its tokens expire.
func (v *jwtValidator) published(ctx context.Context, s signer, now time.Time) error {
	key, err := v.key(ctx, s.kid, now)
	if err == nil && key.Print != s.print {
		err = invalid("signed by a key that another one has replaced")
	}
	return err
}

// key finds a key of the issuer.
func (v *jwtValidator) key(ctx context.Context, kid string, now time.Time) (*issuer.Key, error) {
	key, err := v.keys.Key(ctx, kid, now)
	switch {
	case errors.Is(err, issuer.ErrNoKey):
		err = invalid("signed by an unknown key")
	case err != nil:
		err = unavailable(err)
	}
	return key, err
}

// unrevoked returns p unless its issuer has revoked it.
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
		return nil, invalid("the claims cannot be read")
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
		return nil, invalid(unexpected("issued by another server: iss is", c.Issuer, v.c.Issuer))
	case p.ExpiresAt.IsZero() || !now.Before(p.ExpiresAt.Add(v.c.ClockSkew)):
		return nil, invalid(expired(p.ExpiresAt, now)) // RFC 9068 §4, RS-41
	case issuer.NumericDate(c.NotBefore).After(now.Add(v.c.ClockSkew)) || p.IssuedAt.After(now.Add(v.c.ClockSkew)):
		return nil, invalid("not valid yet")
	case c.Subject == "":
		return nil, invalid("no subject")
	}
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

// place reads the status claim of a token, nil when there is none.
func (v *jwtValidator) place(claim json.RawMessage, issued time.Time) (*statuslist.Place, error) {
	if v.c.InsecureIgnoreStatus {
		return nil, nil
	}
	place, err := v.status.Place(claim, issued)
	switch {
	case err != nil:
		return nil, invalid(err.Error())
	case place == nil && v.c.RequireStatus:
		return nil, invalid("it has no place in a status list")
	}
	return place, nil
}

// statusError says whether a status is a verdict.
func statusError(err error) error {
	if errors.Is(err, statuslist.ErrRevoked) {
		return errRevoked
	}
	return unavailable(err)
}

var errRevoked = invalid(statuslist.ErrRevoked.Error())

func unavailable(err error) error { return fmt.Errorf("%w: %w", ErrUnavailable, err) }

func invalid(why string) error { return fmt.Errorf("%w: %s", ErrInvalidToken, why) }
