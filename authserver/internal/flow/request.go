package flow

import (
	"net/url"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/policy"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Identified is an authorization request of which we know who asks and where the
// answer goes. Only with it may the browser be sent to a client.
type Identified struct {
	Client storage.Client
	// RedirectURI is where the answer goes; Sent is what the request said, "" when
	// it named none and the client has just one.
	RedirectURI, Sent string
	State             string
}

// Request is a valid authorization request.
type Request struct {
	Identified
	Resource     policy.Resolution
	Scopes       oauth.Scopes
	Challenge    string
	Key          string // thumbprint of the key that the code is to be bound to (RFC 9449 §10); "": none
	ResponseMode string // "" for the usual one
	Prompt       []string
	MaxAge       time.Duration // negative: not asked for
	ProvedAfter  time.Time     // of a device: since when they have proved who they are; zero: at any time
	ACR          string        // the weakest authentication context class that will do, "" for any
	ACRs         []string      // the classes that people can reach here
	Query        form.Query    // the request itself, to come back to
	SignIn       bool          // the client wants to know who the person is, and no more
	Nonce        string        // of such a request, for the ID token
	Pushed       *form.Pushed  // nil: it was not pushed
	Provider     string        // where to sign in, "" for the page on which people choose
	LoginHint    string        // whom the client expects, "" when it does not say
	Another      bool          // the person wants to sign in with another account
	Chosen       bool          // the person has just said as whom they answer
	Clearance    string        // the id of the clearance that the client was sent for; "": none
	Told         bool          // the person has seen for whom that waits
	// Paused is the pause of the application by the person who is signed in; nil: there is none, or it is not known.
	Paused *storage.Pause
}

// ResponseURL is the redirect URI with the response parameters added to its own
// query (OAuth 2.1 §2.3, AS-44), and always with iss (RFC 9207 §2, AS-67, AS-68, AS-69) and with
// state exactly when there was one, as it was sent (OAuth 2.1 §4.1.2, AS-42). Each is there once, for
// a redirect URI cannot have them already (oauth.RedirectPolicy, AS-43).
func (to Identified) ResponseURL(issuer string, response url.Values) string {
	response.Set("iss", issuer)
	response.Del("state")
	if to.State != "" {
		response.Set("state", to.State)
	}
	sep := "?"
	switch i := strings.IndexByte(to.RedirectURI, '?'); {
	case i == len(to.RedirectURI)-1:
		sep = ""
	case i >= 0:
		sep = "&"
	}
	return to.RedirectURI + sep + response.Encode()
}

// ErrorResponse is the error response at the redirect URI (OAuth 2.1 §4.1.2.1, AS-41).
func ErrorResponse(err error) url.Values {
	e := oauth.AsError(err)
	return url.Values{"error": {string(e.Code)}, "error_description": {oauth.SafeDescription(e.Description)}}
}

// Examined is what Examine has found out about a request: it is one of the following types.
type Examined interface{ examined() }

// Unidentified is a request of which we do not know who asks or where the answer goes. It
// ends on a page.
type Unidentified struct {
	Client storage.Client // as far as it is known
	Sent   string         // the redirect URI, as the request says
	Err    error
}

// Unread is a request of a client whose metadata document is not read before a person has
// signed in. All of it is what the client says.
type Unread struct {
	Client    storage.Client // its id and source
	Query     form.Query
	Resource  storage.Resource // for the page; it is validated with the client
	Provider  string
	EndNotice string
}

// Invalid is a request that cannot be fulfilled. Visit is nil when no person is signed in.
type Invalid struct {
	To    Identified
	Visit *storage.Visit
	Err   error
}

// Unclear is a request of which it cannot be told now whether the browser is signed in.
type Unclear struct {
	To  Identified
	Err error
}

// Forbidden is a valid request for scopes of which the person may have none, or cannot be
// told now to have them.
type Forbidden struct {
	Request Request
	Visit   *storage.Visit
	Err     error
}

// Valid is a valid request, with the scopes that the person may have. Visit is nil when no person
// is signed in; EndNotice then says why their sign-in has ended.
type Valid struct {
	Request   Request
	Visit     *storage.Visit
	EndNotice string
	// Owes: the person has to prove more than they did when they signed in.
	Owes bool
	// Confirmed: a page has named the account of Visit for this request.
	Confirmed bool
	// Clearance is the one that the request names, if it is one of this person.
	Clearance needed
	// Proof is the step in which the person proves what that demands of them; nil: nothing is missing.
	Proof Step
}

func (Unidentified) examined() {}
func (Unread) examined()       {}
func (Invalid) examined()      {}
func (Unclear) examined()      {}
func (Forbidden) examined()    {}
func (Valid) examined()        {}

// unavailable reports whether the examination failed because of our own store or a provider, and
// so may end otherwise when it is made again.
func unavailable(x Examined) bool {
	var err error
	switch x := x.(type) {
	case Unidentified:
		err = x.Err
	case Invalid:
		err = x.Err
	case Unclear:
		err = x.Err
	case Forbidden:
		err = x.Err
	default:
		return false
	}
	code := oauth.AsError(err).Code
	return code == oauth.TemporarilyUnavailable || code == oauth.ServerError
}
