package authserver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/flow"
	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// providers is a double for a delegation and its providers. Requests and sessions are in the real
// store; the test decides the providers' answers.
type providers struct {
	rig  *rig
	list []delegation.Provider

	mu         sync.Mutex // guards the following fields
	trips      map[string]delegation.Request
	departed   []delegation.Request
	departErr  error
	returnErr  error // with a known trip
	takeErr    error // before the trip is known
	person     string
	returns    int
	checkErr   error
	checkedAge []time.Duration
	permitted  oauth.Scopes // nil: everything
	groups     []string
	groupsErr  error
	asked      []delegation.TokenRequest
	token      delegation.Token
	tokenErr   error
	untied     []string
	claims     map[string]delegation.Result // by ticket and user
	other      string                       // the provider returned another account than this
	disclaimed []string
	silent     bool // the provider does not report when the user authenticated
	nameless   bool // the provider gives only an identifier
	untieErr   error
	logout     http.Handler
}

var (
	google = delegation.Provider{ID: "google", Name: "Google", Icon: "google", Host: "accounts.google.com"}
	github = delegation.Provider{ID: "github", Name: "GitHub", Icon: "github", Host: "github.com"}
)

// delegated returns a rig with the given providers, or both.
func delegated(t *testing.T, change ...func(*Config)) (*rig, *providers) {
	t.Helper()
	f := &providers{
		list: []delegation.Provider{google, github}, trips: map[string]delegation.Request{},
		claims: map[string]delegation.Result{}, person: "ada",
	}
	with := func(c *Config) { c.Delegation = f }
	f.rig = newRig(t, append([]func(*Config){with}, change...)...)
	return f.rig, f
}

func (*providers) OffersTokens() bool { return true }

func (f *providers) Logout() http.Handler { return f.logout }

func (f *providers) Providers() []delegation.Provider { return f.list }

func (f *providers) Route(hint string) string {
	if strings.HasSuffix(hint, "@hub.example") {
		return "github"
	}
	return ""
}

func (f *providers) Depart(_ context.Context, t delegation.Request) (delegation.AuthorizationRequest, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.departErr != nil {
		return delegation.AuthorizationRequest{}, f.departErr
	}
	d := delegation.AuthorizationRequest{
		State: secrets.Token(""), Binding: secrets.Token(""), ExpiresAt: f.rig.now().Add(10 * time.Minute),
	}
	d.URL = "https://idp.example.com/authorize?state=" + d.State
	f.trips[d.State+"."+d.Binding] = t
	f.departed = append(f.departed, t)
	return d, nil
}

func (f *providers) Return(ctx context.Context, r delegation.AuthorizationResponse) (delegation.Result, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.returns++
	key := r.Params.Get("state") + "." + r.Binding
	trip, ok := f.trips[key]
	switch {
	case f.takeErr != nil:
		return delegation.Result{}, f.takeErr
	case !ok:
		return delegation.Result{}, oauth.NewError(oauth.InvalidRequest, "No such trip.")
	}
	delete(f.trips, key)
	out := delegation.Result{Request: trip}
	switch {
	case f.returnErr != nil:
		return out, f.returnErr
	case trip.Provider != r.Provider:
		return out, oauth.NewError(oauth.ServerError,
			"The answer came from another provider than the one that was asked.")
	case r.Params.Get("error") != "":
		return out, oauth.NewError(oauth.AccessDenied, "You did not sign in at Google.")
	case f.other != "":
		out.Came, out.Expected = f.person, f.other
		return out, oauth.NewError(oauth.AccessDenied, "At Google another account is signed in.")
	}
	return f.arrive(ctx, out, r.Session, false)
}

func (f *providers) Claim(ctx context.Context, ticket, userID string) (delegation.Result, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a, ok := f.claims[ticket+userID]
	if !ok {
		return delegation.Result{}, oauth.NewError(oauth.InvalidRequest, "This question was answered already.")
	}
	delete(f.claims, ticket+userID)
	return f.arrive(ctx, delegation.Result{Request: a.Request}, storage.Session{}, true)
}

func (f *providers) Disclaim(_ context.Context, ticket, userID string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.disclaimed = append(f.disclaimed, ticket+userID)
	delete(f.claims, ticket+userID)
	return nil
}

func (f *providers) arrive(
	ctx context.Context, out delegation.Result, se storage.Session, asked bool,
) (delegation.Result, error) {
	now, connector := f.rig.now(), out.Request.Provider
	out.AuthTime, se.AuthTime = now, now
	if f.silent {
		out.AuthTime, se.AuthTime = time.Time{}, time.Time{}
	}
	a := storage.Arrival{
		Asked: asked,
		Identity: storage.Identity{
			Connector: connector, Subject: f.person, UserID: out.Request.UserID, Label: f.person + "@example.com",
			CreatedAt: now, LastUsedAt: now,
		},
		Upstream: storage.Upstream{
			ID: secrets.ID("ups_"), Connector: connector, Subject: f.person, Linked: out.Request.UserID != "",
			Sealed: []byte("x"), Version: 1, CreatedAt: now, CheckedAt: now, DueAt: now,
		},
		Now: now,
	}
	if out.Came = a.Identity.Label; f.nameless {
		out.Came = ""
	}
	if out.Request.UserID == "" {
		a.NewUser = &storage.User{ID: "usr_" + connector + f.person, Name: f.person + "@" + connector, CreatedAt: now}
		a.Session = &se
	}
	var err error
	out.User, err = f.rig.store.Arrive(ctx, a)
	if errors.Is(err, storage.ErrUntied) {
		out.Claim = &delegation.Claim{Ticket: secrets.Token(""), Label: a.Identity.Label, Subject: f.person}
		f.claims[out.Claim.Ticket+out.Request.UserID] = out
		return out, nil
	}
	out.Upstream = a.Upstream.ID
	return out, err
}

func (f *providers) Check(ctx context.Context, id string, maxAge time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.checkedAge = append(f.checkedAge, maxAge)
	u, err := f.rig.store.Upstream(ctx, id)
	switch {
	case err != nil:
		return err
	case !u.EndedAt.IsZero():
		return storage.ErrRevoked
	}
	return f.checkErr
}

func (f *providers) Permit(_ context.Context, _, _ string, scopes oauth.Scopes) (oauth.Scopes, string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.permitted == nil {
		return scopes, "", nil
	}
	return scopes.Intersect(f.permitted), `scope_rules[0] of the provider "google"`, nil
}

func (f *providers) EndNotice(provider, reason string) sentence.Sentence {
	return sentence.New("Notice from "+provider+": "+reason+".", "")
}

func (f *providers) Token(_ context.Context, r delegation.TokenRequest) (delegation.Token, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, r)
	return f.token, f.tokenErr
}

func (f *providers) Identities(ctx context.Context, userID string) ([]storage.Identity, error) {
	return f.rig.store.Identities(ctx, userID)
}

func (f *providers) Disconnect(_ context.Context, userID, connector, subject string, _ storage.Hash) error {
	f.untied = append(f.untied, userID+" "+connector+" "+subject)
	return f.untieErr
}

// set changes the providers' behavior while a server uses them.
func (f *providers) set(change func(*providers)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// end ends all sessions at a provider, as when a user signs out there.
func (f *providers) end(t *testing.T, connector string) {
	t.Helper()
	if _, err := f.rig.store.EndUpstreams(t.Context(), storage.UpstreamKey{Connector: connector}, "logged-out",
		f.rig.now()); err != nil {
		t.Fatal(err)
	}
}

// leave approves on the departure page of a request and returns the response, which sends the
// browser to the provider.
func (p *person) leave(query url.Values) page {
	p.t.Helper()
	pg := p.get("/authorize?" + query.Encode())
	return p.post("/consent", url.Values{"step": {consentStep(p.t, pg)}, "decision": {"approve"}})
}

// callback returns the address that a provider sends a browser back to.
func callback(t *testing.T, provider string, pg page, change ...string) string {
	t.Helper()
	q := url.Values{"state": {responseOf(t, pg).Get("state")}, "code": {"the-code"}}
	for i := 0; i+1 < len(change); i += 2 {
		q.Set(change[i], change[i+1])
	}
	return "/callback/" + provider + "?" + q.Encode()
}

// back returns from a provider, confirms the account if a page asks, and returns the response.
func (p *person) back(path string, header ...string) page {
	p.t.Helper()
	return p.confirm(p.get(path, header...), header...)
}

// confirm confirms the account if pg is the page that names it.
func (p *person) confirm(pg page, header ...string) page {
	p.t.Helper()
	if pg.status != http.StatusOK || !strings.Contains(pg.body, "<h1>Continue as ") {
		return pg
	}
	return p.post("/consent", url.Values{"step": {consentStep(p.t, pg)}, "decision": {"approve"}}, header...)
}

// signInAt runs the whole flow with a provider and returns the token response.
func (p *person) signInAt(provider string, change ...string) map[string]any {
	p.t.Helper()
	back := p.back(callback(p.t, provider, p.leave(authorizeQuery(append(change, "provider", provider)...))))
	status, out := p.token(codeForm(responseOf(p.t, back).Get("code")))
	if status != http.StatusOK {
		p.t.Fatalf("token: got %d %v", status, out)
	}
	return out
}

// tripCookies returns the sign-in cookies that a response sets.
func tripCookies(pg page) (out []string) {
	for _, c := range pg.header.Values("Set-Cookie") {
		if strings.HasPrefix(c, "mcp-authd-trip-") {
			out = append(out, c)
		}
	}
	return out
}

func TestDelegationConfig(t *testing.T) {
	f := &providers{list: []delegation.Provider{google}}
	for _, tt := range []struct {
		name   string
		change func(*Config)
		want   string // "": valid
	}{
		{"in order", func(c *Config) { c.Delegation, c.NoLocalLogin, c.DefaultProvider = f, true, "google" }, ""},
		{"no person could sign in", func(c *Config) { c.NoLocalLogin = true }, "no one could sign in"},
		{"nor without a provider", func(c *Config) { c.Delegation, c.NoLocalLogin = &providers{}, true },
			"no one could sign in"},
		{"a default provider that does not exist", func(c *Config) { c.Delegation, c.DefaultProvider = f, "github" },
			`"github" is not one of the providers`},
		{"a default of nothing", func(c *Config) { c.DefaultProvider = "google" }, "no one could sign in"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c Config
			tt.change(&c)
			err := c.validateDelegation()
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestChooser(t *testing.T) {
	r, f := delegated(t)
	t.Run("the login page offers every provider, and the password", func(t *testing.T) {
		pg := r.person().get("/authorize?" + authorizeQuery().Encode())
		for _, want := range []string{
			"Continue with <bdi>Google", "Continue with <bdi>GitHub", `name="password"`, "provider=google",
			"provider=github",
		} {
			if !strings.Contains(pg.body, want) {
				t.Errorf("no %q in the page", want)
			}
		}
	})
	for _, tt := range []struct{ name, key, value, want string }{
		{"a request that says which", "provider", "github", "github.com"},
		{"a login_hint that says which", "login_hint", "ada@hub.example", "github.com"},
	} {
		t.Run(tt.name+" leads to the departure page", func(t *testing.T) {
			pg := r.person().get("/authorize?" + authorizeQuery(tt.key, tt.value).Encode())
			if strings.Contains(pg.body, `name="password"`) || !strings.Contains(pg.body, tt.want) ||
				!strings.Contains(pg.body, "Sign in another way") {
				t.Errorf("got %d %s", pg.status, pg.body)
			}
		})
	}
	t.Run("prompt=none never leads to a provider", func(t *testing.T) {
		got := responseOf(t, r.person().get("/authorize?"+static("prompt", "none", "provider", "google").Encode()))
		if got.Get("error") != "login_required" || len(f.departed) != 0 {
			t.Errorf("got %v", got)
		}
	})
	t.Run("without passwords the login page has no form, and posting one is refused", func(t *testing.T) {
		r, _ := delegated(t, func(c *Config) { c.NoLocalLogin = true })
		p := r.person()
		pg := p.get("/authorize?" + authorizeQuery().Encode())
		if strings.Contains(pg.body, "password") || !strings.Contains(pg.body, "Continue with <bdi>Google") {
			t.Errorf("got %s", pg.body)
		}
		step, err := r.sessions.SealStep(purposeLogin, browserOf(t, r, p), entry.Destination{})
		if err != nil {
			t.Fatal(err)
		}
		pg = p.post("/login", url.Values{"step": {step}, "username": {"alice"}, "password": {"correct horse battery"}})
		if pg.status != 403 || strings.Contains(strings.Join(pg.header.Values("Set-Cookie"), ""), "session") {
			t.Errorf("got %d %v", pg.status, pg.header)
		}
		if pg := p.get("/setup"); pg.status != 404 {
			t.Errorf("setup: got %d", pg.status)
		}
	})
}

// browserOf returns the browser id of a user who has opened a page.
func browserOf(t *testing.T, r *rig, p *person) string {
	t.Helper()
	req, _ := http.NewRequest(http.MethodGet, p.http.URL, nil)
	for _, c := range p.client.Jar.Cookies(req.URL) {
		req.AddCookie(c)
	}
	return r.sessions.Browser(nil, req)
}

func tripOf(t *testing.T, trip delegation.Request) flow.Payload {
	t.Helper()
	var s flow.Payload
	if err := json.Unmarshal(trip.Payload, &s); err != nil {
		t.Fatal(err)
	}
	return s
}
