package grant

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/keys"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/ways"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const (
	// idTokenTTL is the lifetime of an ID token, here and for the client.
	idTokenTTL = time.Hour
	// MaxNonce is the maximum length of a nonce in bytes. The nonce is part of a URL.
	MaxNonce = 128
)

// IdentityResource returns the resource of a grant that only identifies the user, in place of an
// MCP server. No resource server accepts a token for it.
func IdentityResource(issuer string) storage.Resource {
	return storage.Resource{
		URI:    issuer + "/account",
		Name:   strings.TrimPrefix(strings.TrimPrefix(issuer, "https://"), "http://"),
		Scopes: []storage.ScopeText{{Name: oauth.OpenID, Default: true}}, // pages describe it with their own text
	}
}

// IDTokens issues ID tokens (OpenID Connect Core §2) for clients with storage.Client.SignsIn.
type IDTokens struct {
	Issuer string
	Keys   *keys.Manager
}

// issue returns the ID token of a sign-in, and "" for other grants.
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

// withNonce returns a code with the nonce of its request. The stored hash covers both.
func withNonce(code, nonce string) string {
	if nonce == "" {
		return code
	}
	return code + "." + base64.RawURLEncoding.EncodeToString([]byte(nonce))
}

// nonceOf returns the nonce in a code, or "".
func nonceOf(code string) string {
	_, encoded, _ := strings.Cut(code, ".")
	nonce, _ := base64.RawURLEncoding.DecodeString(encoded) // a changed code is unknown
	return string(nonce)
}
