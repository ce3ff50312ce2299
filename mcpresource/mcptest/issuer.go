package mcptest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// lifetime is the lifetime of the tokens.
const lifetime = time.Hour

// clientID is the application that uses the tokens, unless the test names another.
const clientID = "mcptest"

// Issuer is an authorization server that gives any token to any test. It publishes metadata, a key
// set and a status list on loopback, and introspects tokens for any credentials, so that a server in
// another process can trust it as well.
type Issuer struct {
	URL string // its issuer identifier

	t       testing.TB
	handler http.Handler

	mu        sync.Mutex // guards the fields below
	key       *ecdsa.PrivateKey
	kid       int
	ahead     time.Duration // of the system's clock
	persons   []string      // of the tokens; a token's index is its place in the status list
	revoked   map[int]bool
	validator mcpresource.Validator
}

// NewIssuer starts an issuer that ends with the test.
func NewIssuer(t testing.TB) *Issuer {
	t.Helper()
	i := &Issuer{t: t, revoked: map[int]bool{}}
	i.handler = i.endpoints()
	s := httptest.NewServer(i.handler)
	t.Cleanup(s.Close)
	i.URL = s.URL
	i.Rotate()
	return i
}

// Configure makes the guard of c accept the issuer's tokens, by the issuer's clock. It replaces
// AuthorizationServers, Validator and Now.
func (i *Issuer) Configure(c *mcpresource.Config) {
	c.AuthorizationServers = []string{i.URL}
	c.Validator = mcpresource.ValidatorFunc(i.validate)
	c.Now = i.Now
}

// Token returns an access token of a user for the MCP server at resource. It expires after an hour.
func (i *Issuer) Token(resource, person string, scopes ...string) string {
	i.t.Helper()
	return i.Sign(map[string]any{"aud": resource, "sub": person, "scope": strings.Join(scopes, " ")})
}

// Sign returns an access token with the given claims, such as "acr", "auth_time" or "client_id". It
// adds the claims that every access token has, unless they are given; nil removes one.
func (i *Issuer) Sign(claims map[string]any) string {
	i.t.Helper()
	now := i.Now()
	person, _ := claims["sub"].(string)
	all := map[string]any{
		"iss": i.URL, "client_id": clientID, "jti": rand.Text(), "iat": now.Unix(),
		"exp": now.Add(lifetime).Unix(),
		"status": map[string]any{
			"status_list": map[string]any{"idx": i.place(person), "uri": i.URL + statusPath},
		},
	}
	maps.Copy(all, claims)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	token, err := i.sign(oauth.AccessTokenType, all)
	if err != nil {
		i.t.Fatalf("mcptest: the token cannot be signed: %v", err)
	}
	return token
}

// Revoke revokes all tokens that a user has. It takes effect at the next request.
func (i *Issuer) Revoke(person string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for n, p := range i.persons {
		if p == person {
			i.revoked[n] = true
		}
	}
	i.forget()
}

// Rotate replaces the signing key and withdraws the old one, as after a theft: tokens that it signed
// are no longer accepted.
func (i *Issuer) Rotate() {
	i.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatalf("mcptest: there is no key: %v", err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.key, i.kid = key, i.kid+1
	i.forget()
}

// Now returns the issuer's time: the system's time, and what Advance added.
func (i *Issuer) Now() time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	return time.Now().Add(i.ahead)
}

// Advance moves the issuer's clock, and so the clock of the guards that it configured. Two hours let
// all tokens expire.
func (i *Issuer) Advance(d time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ahead += d
}

// place records a token of a user, and returns its place in the status list.
func (i *Issuer) place(person string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.persons = append(i.persons, person)
	return len(i.persons) - 1
}

// sign returns a JWT of the given type by the current key.
func (i *Issuer) sign(typ string, claims map[string]any) (string, error) {
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	i.mu.Lock()
	key := jose.JSONWebKey{Key: i.key, KeyID: strconv.Itoa(i.kid)}
	i.mu.Unlock()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key},
		(&jose.SignerOptions{}).WithType(jose.ContentType(typ)))
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}
