// Package fakeidp is an identity provider for tests. It implements OpenID Connect, plain OAuth 2.0
// and the parts of GitHub that sign-in needs, on loopback. It can simulate each failure of a
// provider. It records every request, and everything that a correct client would not do. Browsers
// can also use it: see Behaviour.Interactive.
package fakeidp

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"
)

// Endpoint names an endpoint of the provider.
type Endpoint string

// These are the endpoints.
const (
	Discovery  Endpoint = "discovery"
	Keys       Endpoint = "keys"
	Authorize  Endpoint = "authorize"
	Token      Endpoint = "token"
	UserInfo   Endpoint = "userinfo"
	Introspect Endpoint = "introspect"
	Revoke     Endpoint = "revoke"
	GitHub     Endpoint = "github" // REST API: /api/v3/...
)

// Person is a user with an account.
type Person struct {
	Subject string // for OpenID Connect
	ID      int64  // for GitHub
	Login   string
	Name    string
	Email   string
	// Unverified means that the email address was not verified.
	Unverified bool
	// Claims are added to ID token and user info, and override the usual claims.
	Claims map[string]any
	// UserInfoOnly are claims that only user info has.
	UserInfoOnly map[string]any
	// Organizations and Teams are GitHub memberships. A team has the form "organisation/team".
	Organizations, Teams []string
}

// Request is a received request.
type Request struct {
	Endpoint Endpoint
	Method   string
	Path     string
	Query    url.Values
	Form     url.Values // of the body
	Header   http.Header
}

// Upstream is the provider. Its methods are safe for concurrent use.
type Upstream struct {
	// URL is its address and its issuer identifier.
	URL string
	// ClientID and ClientSecret are the credentials of its only client.
	ClientID, ClientSecret string

	mux *http.ServeMux

	mu         sync.Mutex // guards the fields below
	behaviour  Behaviour
	people     []Person
	faults     map[Endpoint][]Fault
	requests   []Request
	violations []string
	keys       []*signingKey
	retired    []*signingKey // no longer published
	codes      map[string]*authorization
	sessions   []*session
	access     map[string]*accessToken
	refresh    map[string]*refreshToken
}

// Alice and Bob are the users unless a test replaces them.
var (
	Alice = Person{Subject: "sub-alice", ID: 1001, Login: "alice", Name: "Alice Example", Email: "alice@example.com"}
	Bob   = Person{Subject: "sub-bob", ID: 1002, Login: "bob", Name: "Bob Example", Email: "bob@example.org"}
)

// New returns a provider that the caller serves at a URL.
func New(at string) *Upstream {
	u := &Upstream{
		URL: at, ClientID: "client-of-mcp-authd", ClientSecret: "secret-of-mcp-authd",
		people: []Person{Alice, Bob}, faults: map[Endpoint][]Fault{},
		codes: map[string]*authorization{}, access: map[string]*accessToken{}, refresh: map[string]*refreshToken{},
	}
	u.keys = []*signingKey{newSigningKey()}
	u.routes()
	return u
}

// Start runs a provider on a free port of loopback until the test ends.
func Start(tb testing.TB) *Upstream {
	tb.Helper()
	s := httptest.NewUnstartedServer(nil) // the address is needed before the first request
	u := New("http://" + s.Listener.Addr().String())
	s.Config.Handler = u
	s.Start()
	tb.Cleanup(func() {
		s.CloseClientConnections() // connections of delayed responses
		s.Close()
	})
	return u
}

func (u *Upstream) routes() {
	u.mux = http.NewServeMux()
	u.handle(Discovery, "GET /.well-known/openid-configuration", u.discovery)
	// Entra has one path per tenant, and one for many tenants. Set the issuer with EditMetadata.
	u.handle(Discovery, "GET /{tenant}/v2.0/.well-known/openid-configuration", u.discovery)
	u.handle(Keys, "GET /keys", u.publish)
	u.handle(Authorize, "GET /authorize", u.authorize)
	u.handle(Authorize, "POST /authorize", u.authorize)
	u.handle(Token, "POST /token", u.token)
	u.handle(UserInfo, "GET /userinfo", u.userInfo)
	u.handle(Introspect, "POST /introspect", u.introspect)
	u.handle(Revoke, "POST /revoke", u.revoke)
	u.gitHubRoutes()
}

// handle registers an endpoint that records its requests and applies faults.
func (u *Upstream) handle(e Endpoint, pattern string, h http.HandlerFunc) {
	u.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
		if err := r.ParseForm(); err != nil {
			http.Error(w, "bad form", http.StatusBadRequest)
			return
		}
		u.record(e, r)
		if f, ok := u.fault(e); ok && f.serve(w, r) {
			return
		}
		h(w, r)
	})
}

// ServeHTTP implements http.Handler.
func (u *Upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) { u.mux.ServeHTTP(w, r) }

func (u *Upstream) record(e Endpoint, r *http.Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.requests = append(u.requests, Request{e, r.Method, r.URL.Path, r.URL.Query(), r.PostForm, r.Header.Clone()})
	// Most providers do not support RFC 8707. Our resource parameter is only for our own tokens.
	if r.Form.Has("resource") {
		u.violations = append(u.violations, string(e)+": sent resource")
	}
	if r.URL.Query().Has("access_token") || r.URL.Query().Has("client_secret") {
		u.violations = append(u.violations, string(e)+": a secret in the URL")
	}
}

// Requests returns the requests to an endpoint so far, or all requests for "".
func (u *Upstream) Requests(e Endpoint) []Request {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(u.requests), func(r Request) bool { return e != "" && r.Endpoint != e })
}

// Calls returns the number of requests to an endpoint.
func (u *Upstream) Calls(e Endpoint) int { return len(u.Requests(e)) }

// Violations returns the client's mistakes: a code or a rotated refresh token used twice, missing
// PKCE, a resource parameter, or a wrong redirect URI, secret or verifier.
func (u *Upstream) Violations() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.violations)
}

// Forget clears the recorded requests and violations.
func (u *Upstream) Forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.requests, u.violations = nil, nil
}

// violate records a violation. The caller holds u.mu.
func (u *Upstream) violate(what string) { u.violations = append(u.violations, what) }

// SetPeople replaces all users. The first one signs in by default. Sessions continue with the new
// data of their user, unless the user is gone.
func (u *Upstream) SetPeople(people ...Person) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.people = slices.Clone(people)
}

// EditPerson changes a user.
func (u *Upstream) EditPerson(subject string, edit func(*Person)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range u.people {
		if u.people[i].Subject == subject {
			edit(&u.people[i])
		}
	}
}

// person returns the user with a subject, or nil. The caller holds u.mu.
func (u *Upstream) person(subject string) *Person {
	for i := range u.people {
		if u.people[i].Subject == subject {
			return &u.people[i]
		}
	}
	return nil
}

// now returns the provider's time. The caller holds u.mu.
func (u *Upstream) now() time.Time {
	now := time.Now
	if u.behaviour.Now != nil {
		now = u.behaviour.Now
	}
	return now().Add(u.behaviour.Skew)
}
