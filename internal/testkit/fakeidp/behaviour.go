package fakeidp

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"time"
)

// Behaviour are the switches of a provider. The zero value is a good one: authorization
// code with PKCE, ID tokens that live 10 minutes, access tokens 1 hour, refresh tokens
// that rotate and are given always.
type Behaviour struct {
	// Interactive: /authorize shows a form for a person, who picks an account and
	// approves or denies. Else it approves at once.
	Interactive bool
	// Deny is the error code that /authorize answers with, "" for none.
	Deny, DenyDescription string
	// NoResponseIssuer leaves iss out of the authorization response, and out of the
	// metadata that it would be there; ResponseIssuer is another one.
	NoResponseIssuer bool
	ResponseIssuer   string

	// AccessTTL is what access tokens live for; negative: they do not say, and live on.
	AccessTTL time.Duration
	// NoRefresh gives no refresh tokens; OfflineAccess only with that scope; StaticRefresh
	// ones that can be used again and again.
	NoRefresh, OfflineAccess, StaticRefresh bool
	// RefreshDenied is the error code for every use of a refresh token.
	RefreshDenied string
	// RenewAs answers every use of a refresh token with the tokens of another person, by
	// their subject.
	RenewAs string
	// Grant narrows what is granted to these scopes.
	Grant []string
	// NoScope leaves scope out of token answers.
	NoScope bool
	// NoIDToken leaves the ID token out; NoIDTokenAtRefresh only there.
	NoIDToken, NoIDTokenAtRefresh bool
	// ErrorsAs200 answers errors of /token with 200, as GitHub and Slack do.
	ErrorsAs200 bool

	// EditIDToken changes header and claims of ID tokens before they are signed.
	EditIDToken func(header, claims map[string]any)
	// Sign is how ID tokens are signed.
	Sign Signing
	// EditUserInfo changes user info.
	EditUserInfo func(claims map[string]any)
	// EditIntrospection changes the answers of introspection about good tokens.
	EditIntrospection func(answer map[string]any)
	// SignedUserInfo answers with a JWT.
	SignedUserInfo bool
	// EditMetadata changes the discovery document.
	EditMetadata func(map[string]any)

	// Now is the provider's clock; Skew is by how much it is wrong.
	Now  func() time.Time
	Skew time.Duration
}

// Signing is a way to sign ID tokens, most of them wrong.
type Signing string

// The ways to sign.
const (
	SignGood      Signing = ""
	SignNone      Signing = "none"      // alg none, no signature
	SignHMAC      Signing = "hmac"      // HS256 with the client secret
	SignWrongKey  Signing = "wrong key" // another provider's, under the right kid
	SignUnknown   Signing = "unknown"   // a key that is published nowhere
	SignTruncated Signing = "truncated" // half a signature
)

// Behave changes the behaviour.
func (u *Upstream) Behave(change func(*Behaviour)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change(&u.behaviour)
}

// Fault is how an endpoint fails.
type Fault struct {
	// Times is how often; 0: until Heal.
	Times int
	// Held, if not nil, delays the answer until it is closed. The answer can be a good one.
	Held <-chan struct{}
	// Down: the connection is cut.
	Down bool
	// Status, Body, Type and Header are the answer; Status 0 with a Body is 200.
	Status int
	Body   string
	Type   string
	Header http.Header
	// Huge is how many bytes the answer has, all of it white space before valid JSON.
	Huge int64
}

// Some faults.
var (
	Down     = Fault{Down: true}
	Error500 = Fault{Status: http.StatusInternalServerError, Body: "boom: internal detail"}
	Error429 = Fault{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"30"}}}
	Garbage  = Fault{Body: `{"access_token": "unterminated`}
	HTML     = Fault{Body: "<html>Maintenance</html>", Type: "text/html"}
	NotJSON  = Fault{Body: `"a string"`}
	Huge     = Fault{Huge: 64 << 20}
)

// Redirect is the fault of being sent elsewhere.
func Redirect(to string) Fault {
	return Fault{Status: http.StatusTemporaryRedirect, Header: http.Header{"Location": {to}}}
}

// OAuthError is the fault of a proper error answer.
func OAuthError(status int, code string) Fault {
	return Fault{Status: status, Body: fmt.Sprintf(`{"error":%q,"error_description":"because"}`, code)}
}

// Fail makes an endpoint fail; several faults take effect one after another.
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

// Heal ends all faults.
func (u *Upstream) Heal() {
	u.mu.Lock()
	defer u.mu.Unlock()
	clear(u.faults)
}

// fault returns the fault that an endpoint has now.
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

// serve fails a request. It returns false if it only held the request.
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
