package signin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Kept is a user's sign-in for one MCP server, as a program keeps it.
type Kept struct {
	Issuer    string       `json:"issuer"`
	Resource  string       `json:"resource,omitempty"`
	ClientID  string       `json:"client_id"`
	Secret    string       `json:"client_secret,omitempty"`
	Redirect  string       `json:"redirect_uri,omitempty"` // of the registration
	Device    bool         `json:"device,omitempty"`       // the client uses the device flow
	Access    string       `json:"access_token"`
	TokenType string       `json:"token_type,omitempty"` // "": Bearer
	Scopes    oauth.Scopes `json:"scopes,omitempty"`
	ExpiresAt time.Time    `json:"expires_at"`
	Refresh   string       `json:"refresh_token,omitempty"`
	Key       []byte       `json:"dpop_key,omitempty"` // PKCS #8
}

// KeyOf returns the key of a sign-in in a store. Each server has its own, so its tokens are never
// sent to another server (CL-15).
func KeyOf(server, account string) string {
	if account != "" {
		server += "\n" + account
	}
	name := sha256.Sum256([]byte(server))
	return hex.EncodeToString(name[:16])
}

// ReadKept parses stored data. It returns the zero value if the data is not valid, which is like no
// sign-in.
func ReadKept(data []byte) (k Kept) {
	if json.Unmarshal(data, &k) != nil {
		return Kept{}
	}
	return k
}

// Granted sets the tokens of k.
func (k *Kept) Granted(t oauth.TokenResponse, now time.Time) {
	k.Access, k.TokenType = t.AccessToken, t.TokenType
	k.ExpiresAt = now.Add(lifetime(t))
	if t.RefreshToken != "" {
		k.Refresh = t.RefreshToken
	}
	if t.Scope != "" {
		k.Scopes = oauth.ParseScopes(t.Scope)
	}
}

// lifetime returns how long a token is used. A server may omit expires_in (RFC 6749 §5.1).
func lifetime(t oauth.TokenResponse) time.Duration {
	const unknown, longest = 5 * time.Minute, 24 * time.Hour
	if t.ExpiresIn <= 0 {
		return unknown
	}
	return min(time.Duration(min(t.ExpiresIn, 1<<30))*time.Second, longest)
}
