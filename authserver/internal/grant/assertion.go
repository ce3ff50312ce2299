package grant

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/mcp-authd/mcp-authd/authserver/internal/clients"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/allowance"
	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const (
	assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" // RFC 7523 §2.2, AS-124

	maxAssertion  = 8 << 10          // bytes
	assertionSkew = 30 * time.Second // allowed difference of the client's clock
	spendPurpose  = "client assertion"
)

// Each accepted assertion is a row until it expires. Clients that registered themselves get fewer
// and shorter ones, because their keys are free to create.
const (
	assertionTTL        = time.Hour       // maximum lifetime for clients that the operator vouches for
	strangeAssertionTTL = 5 * time.Minute // maximum lifetime for all other clients
)

// assertionRate limits the assertions of each client that the operator does not vouch for.
var assertionRate = bounded.Rate{Every: time.Minute / 300, Burst: 300}

// assertionAlgorithms lists only asymmetric algorithms: with HS256, a public key could be used as a
// secret (RFC 8725 §3.1). EdDSA has two names; clients written since RFC 9864 use only the new one.
var assertionAlgorithms = []jose.SignatureAlgorithm{jose.ES256, jose.EdDSA, ed25519Name, jose.RS256}

// ed25519Name is the RFC 9864 §2.2 name of EdDSA with the curve Ed25519.
const ed25519Name jose.SignatureAlgorithm = "Ed25519"

// AssertionAlgorithms returns the names of the accepted signature algorithms for assertions.
func AssertionAlgorithms() (names []string) {
	for _, a := range assertionAlgorithms {
		names = append(names, string(a))
	}
	return names
}

// assertionTypes lists the accepted values of typ. A token made for another purpose must not
// authenticate a client (RFC 8725 §3.11).
var assertionTypes = []string{"", "jwt", "client-authentication+jwt"}

func badAssertion(why string) *oauth.Error {
	return oauth.NewError(oauth.InvalidClient, "Client authentication failed: the client assertion "+why+".")
}

// asserted takes the client's id from an assertion (RFC 7523 §2.2). The assertion is not verified
// yet; its subject determines whose keys to try.
func (c Credentials) asserted() (claim, error) {
	switch {
	case c.AssertionType != assertionType:
		return claim{},
			oauth.NewError(oauth.InvalidClient, "The parameter 'client_assertion_type' must be "+assertionType+".")
	case c.Assertion == "":
		return claim{}, oauth.NewError(oauth.InvalidClient, "The parameter 'client_assertion' is missing.")
	case len(c.Assertion) > maxAssertion:
		return claim{}, badAssertion("is too long")
	}
	parts := strings.Split(c.Assertion, ".")
	if len(parts) != 3 || !canonical(parts[0]) || !canonical(parts[1]) {
		return claim{}, badAssertion("is not a signed JWT")
	}
	var claims struct {
		Subject string `json:"sub"`
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(payload, &claims) != nil || claims.Subject == "" {
		return claim{}, badAssertion("has no subject")
	}
	if c.ClientID != "" && c.ClientID != claims.Subject { // RFC 7521 §4.2
		return claim{}, errTwoClients
	}
	return claim{id: claims.Subject, assertion: c.Assertion}, nil // AS-175
}

// canonical reports whether a segment is in the encoding that an encoder produces. Decoders skip
// line breaks and spare bits, so the same assertion in another spelling would have another digest
// and could be used again.
func canonical(segment string) bool {
	b, err := base64.RawURLEncoding.DecodeString(segment)
	return err == nil && base64.RawURLEncoding.EncodeToString(b) == segment
}

// Keys finds the public keys that may verify an assertion. authserver.ClientKeys documents the
// contract.
type Keys interface {
	ClientKeys(ctx context.Context, c storage.Client, kid string) ([]jose.JSONWebKey, error)
}

// Assertions verifies the assertions that authenticate clients (private_key_jwt).
type Assertions struct {
	Issuer  string
	Keys    Keys // nil: private_key_jwt is not supported
	Clients *clients.Finder
	Spent   storage.Once
	Limits  *allowance.Limits
	Now     func() time.Time
	used    *allowance.Limiter
}

// NewAssertions adds the limit for unvouched clients to a.
func NewAssertions(a Assertions) *Assertions {
	a.used = a.Limits.Limiter("assertions of clients", limitedClients)
	return &a
}

// check verifies that c signed an assertion for this server, that it is currently valid, and that
// it was not used before (RFC 7523 §3).
func (a *Assertions) check(ctx context.Context, c storage.Client, raw string) error {
	if a.Keys == nil || c.JWKS == nil && c.JWKSURI == "" {
		return oauth.NewError(oauth.InvalidClient, "Client authentication failed: this client has no keys registered.")
	}
	token, err := jwt.ParseSigned(raw, assertionAlgorithms)
	if err != nil || len(token.Headers) != 1 {
		return badAssertion("is not a JWT signed with " + strings.Join(AssertionAlgorithms(), ", ")).Because(err)
	}
	header := token.Headers[0]
	if typ, _ := header.ExtraHeaders[jose.HeaderType].(string); !slices.Contains(assertionTypes,
		strings.TrimPrefix(strings.ToLower(typ), "application/")) {
		return badAssertion("is a token of another type")
	}
	keys, err := a.Keys.ClientKeys(ctx, c, header.KeyID)
	var refused *oauth.Error
	if errors.As(err, &refused) {
		return refused
	}
	if err != nil {
		e := oauth.NewError(oauth.TemporarilyUnavailable,
			"The keys of the client are unavailable now. Please try again.").Because(err)
		e.RetryAfter = 10 * time.Second
		return e
	}
	claims, err := verifyAssertion(token, header, keys)
	if err != nil {
		return err
	}
	if err := a.checkClaims(c, claims); err != nil {
		return err
	}
	// Only valid signatures count, so that others cannot exhaust the client's limit.
	if !a.Clients.Vouched(c) && a.used.Take(ctx, allowance.Draw{Key: c.ID, Rate: assertionRate}) > 0 {
		return slowDown(assertionRate, "Too many client assertions from this client. Please wait.")
	}
	return a.spend(ctx, c.ID, raw, claims)
}

// verifyAssertion returns the claims if one of the keys verifies the signature. A key that is bound
// to an algorithm verifies only that algorithm (RFC 7517 §4.4, AS-130).
func verifyAssertion(token *jwt.JSONWebToken, header jose.Header, keys []jose.JSONWebKey) (jwt.Claims, error) {
	for _, k := range keys {
		if k.Algorithm != "" && oldName(k.Algorithm) != oldName(header.Algorithm) {
			continue
		}
		key := k.Key
		if ed, ok := key.(ed25519.PublicKey); ok && header.Algorithm == string(ed25519Name) {
			key = ed25519Verifier(ed)
		}
		var claims jwt.Claims
		if err := token.Claims(key, &claims); err == nil {
			return claims, nil
		}
	}
	return jwt.Claims{}, badAssertion("is not signed by a registered key of this client")
}

func oldName(algorithm string) string {
	if algorithm == string(ed25519Name) {
		return string(jose.EdDSA)
	}
	return algorithm
}

// ed25519Verifier verifies signatures with the new algorithm name, which go-jose does not support
// yet.
type ed25519Verifier ed25519.PublicKey

// VerifyPayload implements jose.OpaqueVerifier.
func (k ed25519Verifier) VerifyPayload(payload, signature []byte, alg jose.SignatureAlgorithm) error {
	if alg != ed25519Name || !ed25519.Verify(ed25519.PublicKey(k), payload, signature) {
		return jose.ErrCryptoFailure
	}
	return nil
}

// checkClaims checks the rules of RFC 7523 §3 (AS-125, AS-126). Every audience must be this server:
// its issuer or, for clients written to the older text, its token endpoint. An assertion that also
// names another server could be a replay by that server.
func (a *Assertions) checkClaims(client storage.Client, c jwt.Claims) error {
	now := a.Now()
	ttl, tooLong := assertionTTL, "is valid for more than an hour"
	if !a.Clients.Vouched(client) {
		ttl, tooLong = strangeAssertionTTL, "is valid for more than five minutes"
	}
	ours := func(aud string) bool {
		return aud == a.Issuer || aud == a.Issuer+"/" || aud == a.Issuer+"/token" || aud == a.Issuer+"/par"
	}
	switch {
	case c.Issuer != client.ID || c.Subject != client.ID:
		return badAssertion("must have the client id as issuer and subject")
	case len(c.Audience) == 0 || slices.ContainsFunc(c.Audience, func(a string) bool { return !ours(a) }):
		return badAssertion("must have this server's issuer identifier as its only audience")
	case c.Expiry == nil:
		return badAssertion("does not expire")
	case !now.Before(c.Expiry.Time().Add(assertionSkew)):
		return badAssertion("has expired")
	case c.Expiry.Time().After(now.Add(ttl + assertionSkew)):
		return badAssertion(tooLong)
	case c.NotBefore != nil && c.NotBefore.Time().After(now.Add(assertionSkew)),
		c.IssuedAt != nil && c.IssuedAt.Time().After(now.Add(assertionSkew)):
		return badAssertion("is not valid yet")
	}
	return nil
}

// spend records the use of an assertion so that it is not accepted again (RFC 7523 §3). An
// assertion without a jti is identified by its digest.
func (a *Assertions) spend(ctx context.Context, clientID, raw string, c jwt.Claims) error {
	id := c.ID
	if id == "" {
		id = raw[:strings.LastIndexByte(raw, '.')] // without the signature, which has two forms with ES256
	}
	digest := secrets.Hash(clientID + "\x00" + id)
	err := a.Spent.Spend(ctx, spendPurpose, base64.RawURLEncoding.EncodeToString(digest[:]),
		c.Expiry.Time().Add(assertionSkew))
	switch {
	case errors.Is(err, storage.ErrSpent):
		return badAssertion("was used before")
	case err != nil:
		return refusal.Unavailable(err)
	}
	return nil
}
