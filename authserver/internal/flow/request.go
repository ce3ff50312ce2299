package flow

import (
	"net/url"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Identified is an authorization request with a known client and redirect URI. Only an Identified
// request may send the browser to a client.
type Identified struct {
	Client storage.Client
	// RedirectURI is the address for the response. Sent is the redirect_uri of the request: "" if
	// it had none and the client has just one.
	RedirectURI, Sent string
	State             string
}

// Request is a valid authorization request.
type Request struct {
	Identified
	Resource     policy.Resolution
	Scopes       oauth.Scopes
	Challenge    string
	Key          string // thumbprint of the key to bind the code to (RFC 9449 §10), or ""
	ResponseMode string // "" for the default
	Prompt       []string
	MaxAge       time.Duration // negative: not requested
	ProvedAfter  time.Time     // for a device: the earliest acceptable authentication; zero: any
	ACR          string        // the weakest acceptable authentication context class, "" for any
	ACRs         []string      // the classes that users can reach here
	Query        form.Query    // the request, to return to it
	SignIn       bool          // the client only wants to identify the user
	Nonce        string        // for the ID token
	Pushed       *form.Pushed  // nil: not pushed
	Provider     string        // where to sign in, "" for the page with the choice
	LoginHint    string        // the user that the client expects, or ""
	Another      bool          // the user wants another account
	Chosen       bool          // the user has just chosen an account
	Clearance    string        // the id of the tool call approval that the client was sent for, or ""
	Told         bool          // the user has seen who decides about Clearance
	// Paused is the signed-in user's pause of the application; nil: none, or not known.
	Paused *storage.Pause
}

// ResponseURL returns the redirect URI with the response parameters added to its own query (OAuth
// 2.1 §2.3, AS-44). It always sets iss (RFC 9207 §2, AS-67, AS-68, AS-69). It sets state,
// unchanged, if the request had one (OAuth 2.1 §4.1.2, AS-42). No parameter repeats, because a
// redirect URI must not contain these (oauth.RedirectPolicy, AS-43).
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

// ErrorResponse returns the parameters of an error response (OAuth 2.1 §4.1.2.1, AS-41).
func ErrorResponse(err error) url.Values {
	e := oauth.AsError(err)
	return url.Values{"error": {string(e.Code)}, "error_description": {oauth.SafeDescription(e.Description)}}
}

// Examined is the result of Examine, one of the following types.
type Examined interface{ examined() }

// Unidentified is a request whose client or redirect URI is not known. It ends on a page.
type Unidentified struct {
	Client storage.Client // as far as known
	Sent   string         // the redirect URI of the request
	Err    error
}

// Unread is a request of a client whose metadata document is read only after the user has signed
// in. All its fields are claims of the request.
type Unread struct {
	Client    storage.Client // id and source
	Query     form.Query
	Resource  storage.Resource // for the page; validated together with the client
	Provider  string
	EndNotice sentence.Sentence
}

// Invalid is a request that cannot be fulfilled. Visit is nil if nobody is signed in.
type Invalid struct {
	To    Identified
	Visit *storage.Visit
	Err   error
}

// Unclear is a request that failed because the browser's session could not be read.
type Unclear struct {
	To  Identified
	Err error
}

// Forbidden is a valid request for scopes that the user must not have, or whose check failed.
type Forbidden struct {
	Request Request
	Visit   *storage.Visit
	Err     error
}

// Valid is a valid request with the scopes that the user may have. Visit is nil if nobody is signed
// in; EndNotice then gives the reason why their session ended.
type Valid struct {
	Request   Request
	Visit     *storage.Visit
	EndNotice sentence.Sentence
	// Owes reports that the user still has to show a second factor.
	Owes bool
	// Confirmed reports that a page has named the account of Visit for this request.
	Confirmed bool
	// Clearance is the tool call approval that the request names, if it belongs to this user.
	Clearance needed
	// Proof is the step where the user authenticates for Clearance; nil: not needed.
	Proof Step
}

func (Unidentified) examined() {}
func (Unread) examined()       {}
func (Invalid) examined()      {}
func (Unclear) examined()      {}
func (Forbidden) examined()    {}
func (Valid) examined()        {}

// unavailable reports whether the examination failed because of the store or a provider, so that
// another try may succeed.
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
