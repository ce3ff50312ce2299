// Package delegation has the types that authserver, which asks people, and thirdparty, which sends
// them to a provider, share about an authorization code flow in which we are the client:
//
//	Request                what the person has approved; its Purpose is why
//	AuthorizationRequest   where the browser goes, and the secrets that bind the response to it
//	AuthorizationResponse  the response of the provider, with the secret that this browser holds
//	Result                 who signed in, and the provider session that was stored for them
//
// A resource server gets a Token of the provider by a TokenRequest. A Provider is named by the
// id of its connector, the configuration of sign-in there.
package delegation

import (
	"encoding/json"
	"log/slog"
	"net/url"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Provider is a place where people sign in, as they see it.
type Provider struct {
	ID   string // that of its connector: in paths, and in the configuration; letters, digits and hyphens
	Name string // "Google"
	Icon string // the name of a built-in icon, "" for none
	Host string // where the browser goes: "accounts.google.com"
}

// ErrHomeProvider refuses a sign-in to an account that began at a provider, which has not confirmed the person.
var ErrHomeProvider = oauth.NewError(oauth.AccessDenied,
	"Your account here began with an account at a provider, which has to confirm it. "+
		"Please sign in with that account first. After that, your other ways to sign in work again.")

// Purpose is what a browser is sent to a provider for.
type Purpose string

// The purposes.
const (
	PurposeSignIn Purpose = "sign-in" // to learn who the person is
	PurposeLink   Purpose = "link"    // to tie the account there to the user that is signed in
	PurposeExtend Purpose = "extend"  // to get further scopes there for the user that is signed in
)

// Reauthentication says whether the person has to prove to the provider again who they are.
type Reauthentication string

// The kinds of it. The zero value asks for no new proof.
const (
	// ReauthAsked: the provider is asked for it. One that does not say when it had the proof is believed.
	ReauthAsked Reauthentication = "asked"
	// ReauthProved: the provider has to say that it had the proof after the browser left.
	ReauthProved Reauthentication = "proved"
)

// MarshalJSON writes none and ReauthProved as the version before stores them. It reads no other value, so a
// replica of that version refuses a response for ReauthAsked.
func (r Reauthentication) MarshalJSON() ([]byte, error) {
	switch r {
	case "":
		return []byte("false"), nil
	case ReauthProved:
		return []byte("true"), nil
	}
	return json.Marshal(string(r))
}

// UnmarshalJSON is the opposite.
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

// Request asks to send a browser to a provider and to learn who signs in there. It is made only
// after the person has approved (AS-220).
type Request struct {
	Provider  string  // its id
	Purpose   Purpose `json:"Errand"` // the version before stores it under this name
	UserID    string  // who is signed in; "" for PurposeSignIn
	LoginHint string  // what the client knows about the person; may be empty
	// Reauth is stored under the name that the version before knows.
	Reauth   Reauthentication `json:"Fresh"`
	Choose   bool             // the person wants to choose the account
	Scopes   oauth.Scopes     // for PurposeExtend: the scopes there that are missing
	ClientID string           // the client that asks, for the log; may be empty
	// Payload comes back with the result. It is stored sealed.
	Payload []byte
}

// AuthorizationRequest says where the browser goes, and what the response has to come with (RFC
// 6749 §4.1.1).
type AuthorizationRequest struct {
	URL string
	// State is the state parameter in URL, Binding a secret that only this browser holds: each
	// is useless without the other.
	State, Binding string
	ExpiresAt      time.Time
}

// AuthorizationResponse is the response of a provider, through the browser (RFC 6749 §4.1.2).
type AuthorizationResponse struct {
	Provider string     // from the path of the callback
	Params   url.Values // the authorization response
	Binding  string     // AuthorizationRequest.Binding, as the browser sent it
	// Session is minted for the person, for PurposeSignIn; its UserID is not known yet.
	Session storage.Session
}

// Result is who signed in. Request is also set beside an error, as soon as it is known.
type Result struct {
	Request Request
	User    storage.User
	// Upstream is the id of the provider session (storage.Upstream).
	Upstream string
	// AuthTime is when the person last proved to the provider who they are; zero: it does
	// not say. The session that was stored has it too.
	AuthTime time.Time
	// Claim is an account that is tied to no user here, for PurposeLink and PurposeExtend;
	// nothing was stored. The person is asked whether it is theirs.
	Claim *Claim
	// Came is the name of the account that the provider returned, "" if the provider has no name for it
	// but its identifier.
	Came string
	// Expected is the name of the account that it should have returned, beside the error that says so.
	Expected string
}

// Claim is an account at a provider that can be tied to the user who signed in with it, after
// the page has shown it to them and they have confirmed it.
type Claim struct {
	Ticket  string // redeems the claim, once, for that user, for ten minutes
	Label   string // the name that the account gives itself; may be anything
	Subject string // the provider's own identifier of it
}

// TokenRequest asks for a token of a provider, for a resource server that holds
// an MCP token of the user.
type TokenRequest struct {
	Provider   string // its id
	UserID     string
	UpstreamID string       // the provider session that the MCP token's grant rests on; "": none
	Resource   string       // canonical; the resource server that gets the token
	Scopes     oauth.Scopes // scopes there; none: those that the policy gives the resource
}

// Token is a token of a provider, for a resource server.
type Token struct {
	Token     string
	Type      string       // "Bearer"
	Scopes    oauth.Scopes // what it allows, as far as the provider says; may be more than was asked for
	ExpiresAt time.Time    // zero: the provider does not say
}

const redacted = "[redacted]"

// String implements fmt.Stringer, and does not show the token.
func (Token) String() string { return redacted }

// GoString implements fmt.GoStringer.
func (Token) GoString() string { return redacted }

// LogValue implements slog.LogValuer.
func (Token) LogValue() slog.Value { return slog.StringValue(redacted) }
