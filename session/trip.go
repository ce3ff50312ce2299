package session

import (
	"log/slog"
	"net/url"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Provider is an upstream identity provider as people see it.
type Provider struct {
	ID   string // that of its connector: in paths, and in the configuration; letters, digits and hyphens
	Name string // "Google"
	Icon string // the name of a built-in icon, "" for none
	Host string // where the browser goes: "accounts.google.com"
}

// Errand is what a browser goes to an upstream provider for.
type Errand string

// The errands.
const (
	ErrandSignIn Errand = "sign-in" // to learn who the person is
	ErrandLink   Errand = "link"    // to tie the account there to the user that is signed in
	ErrandExtend Errand = "extend"  // to get further scopes there for the user that is signed in
)

// Trip is a request to send a browser to an upstream provider. It is made only after the
// person has approved (AS-220).
type Trip struct {
	Provider  string // its id
	Errand    Errand
	UserID    string       // who is signed in; "" for ErrandSignIn
	LoginHint string       // what the client knows about the person; may be empty
	Fresh     bool         // the person has to prove again who they are
	Choose    bool         // the person wants to choose the account
	Scopes    oauth.Scopes // for ErrandExtend: the upstream scopes that are missing
	ClientID  string       // the client that asks, for the log; may be empty
	// Payload comes back with the arrival. It is stored sealed.
	Payload []byte
}

// Departure says where the browser goes, and what it has to bring back.
type Departure struct {
	URL string
	// State is the state parameter in URL, Binding what only this browser holds: neither
	// is worth anything without the other.
	State, Binding string
	ExpiresAt      time.Time
}

// Return is a browser that comes back from an upstream provider.
type Return struct {
	Provider string     // from the path of the callback
	Params   url.Values // the authorization response
	Binding  string     // what Departure.Binding was, as the browser brought it
	// Session is minted for the person, for ErrandSignIn; its UserID is not known yet.
	Session storage.Session
}

// Arrival is who came back. Trip is also set beside an error, as soon as it is known.
type Arrival struct {
	Trip Trip
	User storage.User
	// Upstream is the id of the upstream session, the one at the provider.
	Upstream string
	// AuthTime is when the person last proved to the provider who they are; zero: it does
	// not say. The session that was stored has it too.
	AuthTime time.Time
	// Claim is an account that nobody has here, for ErrandLink and ErrandExtend; nothing
	// was stored. The person is asked whether it is theirs.
	Claim *Claim
	// Came and Expected are what the account that came back is called, and the one that
	// should have, beside the error that says so.
	Came, Expected string
}

// Claim is an account at a provider that can be tied to the user who came back with it,
// once they were shown it and asked.
type Claim struct {
	Ticket  string // opens what waits, once, for that user, for ten minutes
	Label   string // what the account calls itself; may be anything
	Subject string // the provider's own identifier of it
}

// TokenRequest asks for a token of an upstream provider, for a resource server that holds
// an MCP token of the user.
type TokenRequest struct {
	Provider   string // its id
	UserID     string
	UpstreamID string       // the upstream session that the MCP token's grant rests on; "": none
	Resource   string       // canonical; who is to get the token
	Scopes     oauth.Scopes // upstream scopes; none: what the policy gives the resource
}

// UpstreamToken is a token of an upstream provider, for a resource server.
type UpstreamToken struct {
	Token     string
	Type      string       // "Bearer"
	Scopes    oauth.Scopes // what it allows, as far as the provider says; may be more than was asked for
	ExpiresAt time.Time    // zero: the provider does not say
}

const redacted = "[redacted]"

// String implements fmt.Stringer, and does not show the token.
func (UpstreamToken) String() string { return redacted }

// GoString implements fmt.GoStringer.
func (UpstreamToken) GoString() string { return redacted }

// LogValue implements slog.LogValuer.
func (UpstreamToken) LogValue() slog.Value { return slog.StringValue(redacted) }
