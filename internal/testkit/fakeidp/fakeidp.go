// Package fakeidp is an identity provider for tests: OpenID Connect, plain OAuth 2.0
// and the parts of GitHub that signing in needs, on loopback, with a switch for each way
// in which a provider can fail. It remembers every request, and what a good client would
// never have done. A browser can use it, too: see Behaviour.Interactive.
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

// Endpoint names a service of the provider.
type Endpoint string

// The endpoints.
const (
	Discovery  Endpoint = "discovery"
	Keys       Endpoint = "keys"
	Authorize  Endpoint = "authorize"
	Token      Endpoint = "token"
	UserInfo   Endpoint = "userinfo"
	Introspect Endpoint = "introspect"
	Revoke     Endpoint = "revoke"
	GitHub     Endpoint = "github" // its API: /api/v3/...
)

// Person is one with an account here.
type Person struct {
	Subject string // of OpenID Connect
	ID      int64  // of GitHub
	Login   string
	Name    string
	Email   string
	// Unverified: the owner of the address was not checked.
	Unverified bool
	// Claims are added to ID token and user info, and win.
	Claims map[string]any
	// UserInfoOnly are claims that only user info has.
	UserInfoOnly map[string]any
	// Organizations and Teams are those of GitHub; a team is "organisation/team".
	Organizations, Teams []string
}

// Request is a request as it arrived.
type Request struct {
	Endpoint Endpoint
	Method   string
	Path     string
	Query    url.Values
	Form     url.Values // of the body
	Header   http.Header
}

// Upstream is the provider. Its methods may be called at any time.
type Upstream struct {
	// URL is where it is, and its issuer identifier.
	URL string
	// ClientID and ClientSecret are those of the one client that it knows.
	ClientID, ClientSecret string

	mux *http.ServeMux

	mu         sync.Mutex // guards what follows
	behaviour  Behaviour
	people     []Person
	faults     map[Endpoint][]Fault
	requests   []Request
	violations []string
	keys       []*signingKey
	retired    []*signingKey // not published any more
	codes      map[string]*authorization
	sessions   []*session
	access     map[string]*accessToken
	refresh    map[string]*refreshToken
}

// Alice and Bob have accounts unless a test replaces them.
var (
	Alice = Person{Subject: "sub-alice", ID: 1001, Login: "alice", Name: "Alice Example", Email: "alice@example.com"}
	Bob   = Person{Subject: "sub-bob", ID: 1002, Login: "bob", Name: "Bob Example", Email: "bob@example.org"}
)

// New returns a provider that is to be served at a URL.
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

// Start runs a provider on a free port of loopback, until the test ends.
func Start(tb testing.TB) *Upstream {
	tb.Helper()
	s := httptest.NewUnstartedServer(nil) // its address is known before the first request
	u := New("http://" + s.Listener.Addr().String())
	s.Config.Handler = u
	s.Start()
	tb.Cleanup(func() {
		s.CloseClientConnections() // those that a slow answer holds
		s.Close()
	})
	return u
}

func (u *Upstream) routes() {
	u.mux = http.NewServeMux()
	u.handle(Discovery, "GET /.well-known/openid-configuration", u.discovery)
	// Entra has a path for each tenant, or for many; the issuer is EditMetadata's business.
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

// handle serves an endpoint, unless it is to fail, and remembers the request.
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
	// RFC 8707 is not what most providers know: "resource" is for our own tokens.
	if r.Form.Has("resource") {
		u.violations = append(u.violations, string(e)+": sent resource")
	}
	if r.URL.Query().Has("access_token") || r.URL.Query().Has("client_secret") {
		u.violations = append(u.violations, string(e)+": a secret in the URL")
	}
}

// Requests returns the requests to an endpoint so far, "" for all.
func (u *Upstream) Requests(e Endpoint) []Request {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(u.requests), func(r Request) bool { return e != "" && r.Endpoint != e })
}

// Calls returns how many requests an endpoint has had.
func (u *Upstream) Calls(e Endpoint) int { return len(u.Requests(e)) }

// Violations returns what a good client would not have done: a code or a rotated refresh
// token used twice, no PKCE, a resource parameter, a wrong redirect URI, secret or verifier.
func (u *Upstream) Violations() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.violations)
}

// Forget makes requests and violations so far unseen.
func (u *Upstream) Forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.requests, u.violations = nil, nil
}

// violate needs u.mu.
func (u *Upstream) violate(what string) { u.violations = append(u.violations, what) }

// SetPeople replaces all people. The first one signs in when nothing says otherwise.
// Sessions go on, with what is now known of their person, unless the person is gone.
func (u *Upstream) SetPeople(people ...Person) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.people = slices.Clone(people)
}

// EditPerson changes what is known of a person.
func (u *Upstream) EditPerson(subject string, edit func(*Person)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range u.people {
		if u.people[i].Subject == subject {
			edit(&u.people[i])
		}
	}
}

// person needs u.mu; nil when there is no such person (any more).
func (u *Upstream) person(subject string) *Person {
	for i := range u.people {
		if u.people[i].Subject == subject {
			return &u.people[i]
		}
	}
	return nil
}

// now needs u.mu.
func (u *Upstream) now() time.Time {
	now := time.Now
	if u.behaviour.Now != nil {
		now = u.behaviour.Now
	}
	return now().Add(u.behaviour.Skew)
}
