// Package delegation has the types that packages authserver and thirdparty share. Authserver talks
// to the user and thirdparty to the provider. This server is the client of the provider's
// authorization code flow:
//
//	Request                a sign-in that the user has approved; its Purpose is why
//	AuthorizationRequest   the URL for the browser, and the secrets that bind the response to it
//	AuthorizationResponse  the response of the provider, with this browser's secret
//	Result                 who signed in, and the provider session that was stored for them
//
// A resource server gets a provider's Token with a TokenRequest. A Provider is identified by the ID
// of its connector, the configuration of sign-in there.
package delegation

import (
	"encoding/json"
	"log/slog"
	"net/url"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Provider describes a provider to users.
type Provider struct {
	ID   string // ID of its connector, used in paths and the configuration; letters, digits and hyphens
	Name string // "Google"
	Icon string // name of a built-in icon, or ""
	Host string // host that the browser is sent to: "accounts.google.com"
}

// ErrHomeProvider refuses a sign-in to an account that was created at a provider, if that provider
// has not confirmed the user.
var ErrHomeProvider = sentence.NewError(oauth.AccessDenied,
	"Your account here began with an account at a provider, which has to confirm it. "+
		"Please sign in with that account first. After that, your other ways to sign in work again.", "away")

// Purpose is why a browser is sent to a provider.
type Purpose string

// The purposes.
const (
	PurposeSignIn Purpose = "sign-in" // to identify the user
	PurposeLink   Purpose = "link"    // to link the account there to the signed-in user
	PurposeExtend Purpose = "extend"  // to get more scopes there for the signed-in user
)

// Reauthentication says whether the user must authenticate at the provider again.
type Reauthentication string

// The kinds of reauthentication. The zero value requires none.
const (
	// ReauthAsked requests it. A provider that does not report the time of authentication is
	// accepted.
	ReauthAsked Reauthentication = "asked"
	// ReauthProved also requires that the provider reports an authentication after the browser
	// left.
	ReauthProved Reauthentication = "proved"
)

// MarshalJSON encodes "" and ReauthProved as the previous version does. That version reads no other
// value, so a replica that runs it refuses a response for ReauthAsked.
func (r Reauthentication) MarshalJSON() ([]byte, error) {
	switch r {
	case "":
		return []byte("false"), nil
	case ReauthProved:
		return []byte("true"), nil
	}
	return json.Marshal(string(r))
}

// UnmarshalJSON reverses MarshalJSON.
func (r *Reauthentication) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case "false":
		*r = ""
	case "true":
		*r = ReauthProved
	default:
		return json.Unmarshal(b, (*string)(r))
	}
	return nil
}

// Request asks to send a browser to a provider and to find out who signs in there. It is made only
// after the user has approved (AS-220).
type Request struct {
	Provider  string  // ID of the provider
	Purpose   Purpose `json:"Errand"` // name in the previous version's stored form
	UserID    string  // the signed-in user; "" for PurposeSignIn
	LoginHint string  // the client's hint about the user; may be empty
	// Reauth has the name of the previous version's stored form.
	Reauth   Reauthentication `json:"Fresh"`
	Choose   bool             // the user wants to choose the account
	Scopes   oauth.Scopes     // for PurposeExtend: the missing scopes at the provider
	ClientID string           // the client of the request, for the log; may be empty
	// Payload is returned with the result. It is stored sealed.
	Payload []byte
}

// AuthorizationRequest contains the URL for the browser, and the secrets that the response must
// match (RFC 6749 §4.1.1).
type AuthorizationRequest struct {
	URL string
	// State is the state parameter in URL. Binding is a secret that only this browser holds. Each
	// is useless without the other.
	State, Binding string
	ExpiresAt      time.Time
}

// AuthorizationResponse is the response of a provider, through the browser (RFC 6749 §4.1.2).
type AuthorizationResponse struct {
	Provider string     // from the callback path
	Params   url.Values // the authorization response
	Binding  string     // AuthorizationRequest.Binding, as the browser sent it
	// Session is the new session for PurposeSignIn. Its UserID is not known yet.
	Session storage.Session
}

// Result describes who signed in. Request is set even if an error is returned, as soon as it is
// known.
type Result struct {
	Request Request
	User    storage.User
	// Upstream is the ID of the provider session (storage.Upstream).
	Upstream string
	// AuthTime is when the user last authenticated at the provider; zero: unknown. The stored
	// session has the same time.
	AuthTime time.Time
	// Claim is set for PurposeLink and PurposeExtend if the account is linked to no user here.
	// Nothing is stored until the user confirms that the account is theirs.
	Claim *Claim
	// Came is the name of the returned account, or "" if the provider gave only an identifier.
	Came string
	// Expected is the name of the expected account, if the error says that another one was
	// returned.
	Expected string
}

// Claim is an account at a provider that can be linked to the signed-in user. A page must first
// show it to the user, who must confirm it.
type Claim struct {
	Ticket  string // redeems the claim, once, for that user, within ten minutes
	Label   string // display name of the account; untrusted
	Subject string // the provider's identifier of the account
}

// TokenRequest asks for a provider's token, for a resource server that holds an MCP token of the
// user.
type TokenRequest struct {
	Provider   string // ID of the provider
	UserID     string
	UpstreamID string       // the provider session that the MCP token's grant depends on; "": none
	Resource   string       // canonical; the resource server that gets the token
	Scopes     oauth.Scopes // scopes at the provider; empty: all that the policy allows the resource
}

// Token is a provider's token for a resource server.
type Token struct {
	Token     string
	Type      string       // "Bearer"
	Scopes    oauth.Scopes // granted scopes as far as known; may exceed the request
	ExpiresAt time.Time    // zero: unknown
}

const redacted = "[redacted]"

// String implements fmt.Stringer, and does not show the token.
func (Token) String() string { return redacted }

// GoString implements fmt.GoStringer.
func (Token) GoString() string { return redacted }

// LogValue implements slog.LogValuer.
func (Token) LogValue() slog.Value { return slog.StringValue(redacted) }
