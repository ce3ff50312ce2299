package fakeidp

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"time"
)

// Behaviour configures a provider. The zero value behaves well: authorization code with PKCE, ID
// tokens with a lifetime of 10 minutes, and access tokens of 1 hour. Every response has a refresh
// token, and refresh tokens rotate.
type Behaviour struct {
	// Interactive makes /authorize show a form for a user, who picks an account and approves or
	// denies. Otherwise it approves immediately.
	Interactive bool
	// Deny is the error code in the response of /authorize, or "".
	Deny, DenyDescription string
	// NoResponseIssuer omits iss from the authorization response, and the metadata field that
	// announces it. ResponseIssuer replaces the value of iss.
	NoResponseIssuer bool
	ResponseIssuer   string

	// AccessTTL is the lifetime of access tokens. If negative, they do not expire and responses
	// have no expires_in.
	AccessTTL time.Duration
	// NoRefresh omits refresh tokens. OfflineAccess requires the scope offline_access for them.
	// StaticRefresh makes them reusable.
	NoRefresh, OfflineAccess, StaticRefresh bool
	// RefreshDenied is the error code for every use of a refresh token.
	RefreshDenied string
	// RenewAs is the subject of another user. Every use of a refresh token returns that user's
	// tokens.
	RenewAs string
	// Grant limits the granted scopes.
	Grant []string
	// NoScope omits scope from token responses.
	NoScope bool
	// NoIDToken omits the ID token. NoIDTokenAtRefresh omits it only from refresh responses.
	NoIDToken, NoIDTokenAtRefresh bool
	// ErrorsAs200 sends errors of /token with status 200, as GitHub and Slack do.
	ErrorsAs200 bool

	// EditIDToken changes header and claims of ID tokens before they are signed.
	EditIDToken func(header, claims map[string]any)
	// Sign selects how ID tokens are signed.
	Sign Signing
	// EditUserInfo changes user info.
	EditUserInfo func(claims map[string]any)
	// EditIntrospection changes the introspection responses for valid tokens.
	EditIntrospection func(answer map[string]any)
	// SignedUserInfo sends user info as a JWT.
	SignedUserInfo bool
	// EditMetadata changes the discovery document.
	EditMetadata func(map[string]any)

	// Now is the provider's clock. Skew is the error of that clock.
	Now  func() time.Time
	Skew time.Duration
}

// Signing is a way to sign ID tokens. Most are wrong.
type Signing string

// These are the ways to sign.
const (
	SignGood      Signing = ""
	SignNone      Signing = "none"      // alg none, no signature
	SignHMAC      Signing = "hmac"      // HS256 with the client secret
	SignWrongKey  Signing = "wrong key" // another provider's key, with the right kid
	SignUnknown   Signing = "unknown"   // a key that is not published
	SignTruncated Signing = "truncated" // half a signature
)

// Behave changes the behaviour.
func (u *Upstream) Behave(change func(*Behaviour)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change(&u.behaviour)
}

// Fault is a failure of an endpoint.
type Fault struct {
	// Times is the number of failures. 0 means until Heal.
	Times int
	// Held, if not nil, delays the response until it is closed. The response may be a good one.
	Held <-chan struct{}
	// Down closes the connection without a response.
	Down bool
	// Status, Body, Type and Header make up the response. Status 0 with a Body means 200.
	Status int
	Body   string
	Type   string
	Header http.Header
	// Huge is the number of bytes of white space before valid JSON in the response.
	Huge int64
}

// These are common faults.
var (
	Down     = Fault{Down: true}
	Error500 = Fault{Status: http.StatusInternalServerError, Body: "boom: internal detail"}
	Error429 = Fault{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"30"}}}
	Garbage  = Fault{Body: `{"access_token": "unterminated`}
	HTML     = Fault{Body: "<html>Maintenance</html>", Type: "text/html"}
	NotJSON  = Fault{Body: `"a string"`}
	Huge     = Fault{Huge: 64 << 20}
)

// Redirect returns a fault that redirects to a URL.
func Redirect(to string) Fault {
	return Fault{Status: http.StatusTemporaryRedirect, Header: http.Header{"Location": {to}}}
}

// OAuthError returns a fault with an OAuth error response.
func OAuthError(status int, code string) Fault {
	return Fault{Status: status, Body: fmt.Sprintf(`{"error":%q,"error_description":"because"}`, code)}
}

// Fail makes an endpoint fail. Several faults apply one after another.
func (u *Upstream) Fail(e Endpoint, faults ...Fault) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.faults[e] = faults
}

// FailAll makes every endpoint fail.
func (u *Upstream) FailAll(f Fault) {
	for _, e := range []Endpoint{Discovery, Keys, Authorize, Token, UserInfo, Introspect, Revoke, GitHub} {
		u.Fail(e, f)
	}
}

// Heal removes all faults.
func (u *Upstream) Heal() {
	u.mu.Lock()
	defer u.mu.Unlock()
	clear(u.faults)
}

func (u *Upstream) fault(e Endpoint) (Fault, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	list := u.faults[e]
	if len(list) == 0 {
		return Fault{}, false
	}
	f := list[0]
	if f.Times == 1 || f.Times == 0 && len(list) > 1 {
		u.faults[e] = list[1:]
	} else if f.Times > 1 {
		list[0].Times--
	}
	return f, true
}

// serve sends the faulty response. It returns false if it only delayed the request.
func (f Fault) serve(w http.ResponseWriter, r *http.Request) bool {
	if f.Held != nil {
		select {
		case <-f.Held:
		case <-r.Context().Done():
			return true
		}
	}
	switch {
	case f.Down:
		panic(http.ErrAbortHandler)
	case f.Huge > 0:
		w.Header().Set("Content-Type", "application/json")
		blank := bytes.Repeat([]byte(" "), 64<<10)
		for sent := int64(0); sent < f.Huge; sent += int64(len(blank)) {
			if _, err := w.Write(blank); err != nil {
				return true
			}
		}
		_, _ = w.Write([]byte("{}"))
		return true
	case f.Status == 0 && f.Body == "":
		return false
	}
	for name, values := range f.Header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", cmp.Or(f.Type, "application/json"))
	w.WriteHeader(max(f.Status, http.StatusOK))
	_, _ = w.Write([]byte(f.Body))
	return true
}
