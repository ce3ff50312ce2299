package grant

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/ways"
	"github.com/mcp-authd/mcp-authd/keys"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

const (
	// idTokenTTL is how long an ID token is good for, here and for the client.
	idTokenTTL = time.Hour
	// MaxNonce bounds the nonce of a request, in bytes: it goes through a URL.
	MaxNonce = 128
)

// IdentityResource is what a sign-in for such a client is granted for, in place of an MCP server. No
// resource server takes a token for it.
func IdentityResource(issuer string) storage.Resource {
	return storage.Resource{
		URI:    issuer + "/account",
		Name:   strings.TrimPrefix(strings.TrimPrefix(issuer, "https://"), "http://"),
		Scopes: []storage.ScopeText{{Name: oauth.OpenID, Default: true}}, // pages have words of their own for it
	}
}

// IDTokens makes ID tokens (OpenID Connect Core §2), for clients of which storage.Client.SignsIn says so.
type IDTokens struct {
	Issuer string
	Keys   *keys.Manager
}

// issue returns the ID token of a sign-in, and "" for every other grant.
func (t *IDTokens) issue(ctx context.Context, g storage.Grant, nonce string, now time.Time) (string, error) {
	if g.Resource != IdentityResource(t.Issuer).URI || !slices.Contains(g.Scopes, oauth.OpenID) {
		return "", nil
	}
	claims := oauth.IDTokenClaims{
		Issuer:   t.Issuer,
		Subject:  g.UserID,
		Audience: g.ClientID,
		Expires:  earlier(now.Add(idTokenTTL), g.ExpiresAt).Unix(),
		IssuedAt: now.Unix(),
		TokenID:  g.ID,
		Nonce:    nonce,
		ACR:      ways.ACR(g.Methods),
		AMR:      ways.AMR(g.Methods),
	}
	if !g.AuthTime.IsZero() {
		claims.AuthTime = g.AuthTime.Unix()
	}
	return t.Keys.Sign(ctx, oauth.IDTokenType, claims)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// withNonce is a code that carries the nonce of its request. What is stored is the hash of the whole.
func withNonce(code, nonce string) string {
	if nonce == "" {
		return code
	}
	return code + "." + base64.RawURLEncoding.EncodeToString([]byte(nonce))
}

// nonceOf is the nonce that a code carries; may be "".
func nonceOf(code string) string {
	_, encoded, _ := strings.Cut(code, ".")
	nonce, _ := base64.RawURLEncoding.DecodeString(encoded) // a code that was changed is not known
	return string(nonce)
}
