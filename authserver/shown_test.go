package authserver

import (
	"context"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/flow"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const evil = "https://evil.example/cb"

// nice is a client that registered itself and can change its registration.
func (r *rig) nice(change ...func(*storage.Client)) storage.Client {
	r.t.Helper()
	c := storage.Client{
		ID: "nice", Name: "Nice", RedirectURIs: []string{"https://nice.example/cb"},
		GrantTypes: []string{oauth.GrantCode, oauth.GrantRefresh},
		AuthMethod: "none", Source: storage.SourceDynamic, CreatedAt: r.now(),
	}
	for _, f := range change {
		f(&c)
	}
	r.replace(c)
	return c
}

func (r *rig) replace(c storage.Client) {
	r.t.Helper()
	if err := r.store.ReplaceClient(r.t.Context(), c, r.now()); err != nil {
		r.t.Fatal(err)
	}
}

// niceQuery returns a request of that client, which names no redirect URI unless change does.
func niceQuery(change ...string) url.Values {
	return authorizeQuery(append([]string{"client_id", "nice", "redirect_uri", ""}, change...)...)
}

func redirectTo(uris ...string) func(*storage.Client) {
	return func(c *storage.Client) { c.RedirectURIs, c.Source = uris, storage.SourceManaged }
}

// materialChanges lists the changes of a client that require a new consent.
var materialChanges = map[string]func(*storage.Client){
	"redirect URIs": redirectTo(evil),
	"a further one": redirectTo("https://nice.example/cb", evil),
	"name":          func(c *storage.Client) { c.Name = "Claude" },
	"logo":          func(c *storage.Client) { c.Metadata = []byte(`{"logo_uri":"https://claude.ai/logo.png"}`) },
	"keys":          func(c *storage.Client) { c.JWKSURI = "https://evil.example/keys" },
	"method":        func(c *storage.Client) { c.AuthMethod = "client_secret_basic" },
}

func wantPage(t *testing.T, pg page, texts ...string) {
	t.Helper()
	if pg.status != http.StatusOK || pg.header.Get("Location") != "" || pg.header.Get("Refresh") != "" ||
		!strings.Contains(pg.body, `value="approve"`) {
		t.Fatalf("got %d %s, want a page that asks: %.300s", pg.status, pg.header.Get("Location"), pg.body)
	}
	for _, text := range texts {
		if !strings.Contains(pg.body, text) {
			t.Errorf("no %q in the page", text)
		}
	}
}

// Security H1: the code goes only to the redirect URI on the page.
func TestWhatWasShownIsWhatIsAllowed(t *testing.T) {
	decide := func(p *person, shown page, verdict string) page {
		return p.post("/consent", url.Values{"step": {consentStep(p.t, shown)}, "decision": {verdict}})
	}
	t.Run("H1 SP-01 a redirect URI that is changed between page and click", func(t *testing.T) {
		for _, verdict := range []string{"approve", "deny"} {
			r := newRig(t)
			p, c := r.person(), r.nice()
			before := p.login(niceQuery())
			wantPage(t, before, "nice.example")
			redirectTo(evil)(&c)
			r.replace(c)
			after := decide(p, before, verdict)
			wantPage(t, after, "evil.example")
			if got := responseOf(t, decide(p, after, "approve")); !got.Has("code") {
				t.Errorf("the current page, approved: got %v", got)
			}
		}
	})
	t.Run("H1 AS-77 every other material change shows the page again", func(t *testing.T) {
		for name, change := range materialChanges {
			r := newRig(t)
			p, c := r.person(), r.nice()
			query := niceQuery("redirect_uri", c.RedirectURIs[0])
			before := p.login(query)
			change(&c)
			r.replace(c)
			after := decide(p, before, "approve")
			if name == "redirect URIs" { // the requested one is no longer registered
				if after.status != http.StatusBadRequest || after.header.Get("Location") != "" {
					t.Errorf("%s: got %d", name, after.status)
				}
				continue
			}
			wantPage(t, after, c.Name)
		}
	})
	t.Run("SP-01 an operator gives the resource or a scope another meaning", func(t *testing.T) {
		for name, change := range map[string]func(*storage.Resource){
			"name":        func(r *storage.Resource) { r.Name = "Bank" },
			"description": func(r *storage.Resource) { r.Scopes[0].Description = "move money" },
			"access":      func(r *storage.Resource) { r.Scopes[0].Access = storage.AccessWrite },
			"need":        func(r *storage.Resource) { r.Scopes[1].EveryCall = true },
			"danger":      func(r *storage.Resource) { r.Scopes[0].Dangerous = true },
			"inclusion":   func(r *storage.Resource) { r.Scopes[0].Implies = []string{"notes:write"} },
		} {
			r := newRig(t)
			p := r.person()
			r.nice()
			before := p.login(niceQuery())
			changed := r.cfg.Resources[0]
			changed.Scopes = slices.Clone(changed.Scopes)
			change(&changed)
			r.restart(func(c *Config) { c.Resources = []storage.Resource{changed} })
			after := decide(p, before, "approve")
			wantPage(t, after, map[string]string{"name": "Bank", "description": "move money"}[name])
			yes := url.Values{"scope": {"mcp"}} // users tick dangerous scopes themselves
			if got := responseOf(t, p.decided(after, yes)); !got.Has("code") {
				t.Errorf("%s: the current page, approved: got %v", name, got)
			}
		}
	})
	t.Run("H1 a request without redirect_uri is answered where the page said, or not at all", func(t *testing.T) {
		r := newRig(t)
		p, c := r.person(), r.nice()
		before := p.login(niceQuery())
		redirectTo(evil, "https://nice.example/cb")(&c)
		r.replace(c)
		if pg := decide(p, before, "approve"); pg.status != http.StatusBadRequest || pg.header.Get("Location") != "" {
			t.Errorf("two redirect URIs now: got %d %v", pg.status, pg.header)
		}
	})
	t.Run("H1 SP-01 the page comes again though what it asks for was approved before", func(t *testing.T) {
		r := newRig(t)
		p := r.person()
		c := r.nice(redirectTo(evil))
		p.approve(niceQuery("redirect_uri", evil)) // evil has its own approval
		r.replace(r.nice())
		before := p.get("/authorize?" + niceQuery().Encode())
		wantPage(t, before, "nice.example")
		r.replace(c)
		wantPage(t, decide(p, before, "deny"), "evil.example")
	})
	t.Run("H1 a form of the version before says nothing of what was shown", func(t *testing.T) {
		r := newRig(t)
		r.nice()
		form := flow.ConsentForm{Query: form.Query(niceQuery().Encode())}
		step := r.pages.authorize.flow.Consent(t.Context(), form, storage.Hash{}, flow.Decision{Verdict: "approve"})
		enter, _ := step.(flow.SignInStep)
		if _, ok := enter.Step.(entry.Login); !ok {
			t.Errorf("got %T %+v", step, step)
		}
	})
	t.Run("H1 AS-114 an approval of fewer scopes, or of another resource, does not count", func(t *testing.T) {
		r := newRig(t)
		to := flow.Identified{Client: r.nice(), RedirectURI: "https://nice.example/cb"}
		u, err := r.store.UserByName(t.Context(), "alice")
		if err != nil {
			t.Fatal(err)
		}
		fresh := r.sessions.Mint(u.ID)
		by := storage.SignInStart{PasswordHash: u.PasswordHash}
		if err := r.store.PutSession(t.Context(), fresh.Session, by); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			resource string
			scopes   oauth.Scopes
			want     flow.Step // compared by type
		}{
			{testResource, nil, flow.AskConsent{}},
			{"https://other.example.com", oauth.Scopes{"mcp"}, flow.AskConsent{}},
			{testResource, oauth.Scopes{"mcp"}, flow.Respond{}},
		} {
			f, resource := r.pages.authorize.flow, r.cfg.Resources[0]
			resource.URI = tt.resource
			shown := f.Shown(flow.Request{
				Identified: to, Resource: policy.Resolution{Resource: resource}, Scopes: tt.scopes,
			}, policy.Question{Asked: tt.scopes})
			form := flow.ConsentForm{
				Query: form.Query(niceQuery().Encode()), Shown: shown, UserID: u.ID, AuthTime: r.now().Unix(),
			}
			step := f.Consent(t.Context(), form, fresh.Session.Hash, flow.Decision{Verdict: "approve"})
			if answer, ok := step.(flow.Respond); reflect.TypeOf(step) != reflect.TypeOf(tt.want) ||
				ok != answer.Response.Has("code") {
				t.Errorf("%s %v: got %T %+v", tt.resource, tt.scopes, step, step)
			}
		}
	})
	t.Run("H1 AS-77 a document that changes between page and click", func(t *testing.T) {
		r, d := newDocumentRig(t)
		p := r.person()
		before := p.login(documentQuery(d, "redirect_uri", ""))
		d.doc.RedirectURIs = []string{evil}
		wantPage(t, decide(p, before, "approve"), "evil.example")
	})
}

// Security H2: an approval is for the redirect URI on the page.
func TestApprovalsAreForAPlace(t *testing.T) {
	const claude = "https://claude.ai/api/mcp/auth_callback"
	t.Run("H2 AS-74 two redirect URIs, one approved: the other is asked about", func(t *testing.T) {
		for _, good := range []string{claude, "http://127.0.0.1/callback", "cursor://cb"} {
			r := newRig(t)
			p := r.person()
			r.nice(redirectTo(good, evil))
			p.approve(niceQuery("redirect_uri", good))
			wantPage(t, p.get("/authorize?"+niceQuery("redirect_uri", evil).Encode()), "evil.example")
			if pg := p.get("/authorize?" + niceQuery("redirect_uri", evil, "prompt", "none").Encode()); pg.header.Get(
				"Location") != "" {
				t.Errorf("prompt=none: the browser is sent to %s", pg.header.Get("Location"))
			}
			if good == "http://127.0.0.1/callback" {
				good = "http://127.0.0.1:40666/callback" // any port is one place
			}
			if pg := p.get("/authorize?" + niceQuery("redirect_uri", good).Encode()); !strings.HasPrefix(
				pg.header.Get("Location"), good) && pg.status != http.StatusOK {
				t.Errorf("%s, which was approved: got %d %v", good, pg.status, pg.header)
			}
		}
	})
	t.Run("H2 AS-77 RFC 7592 a change of the registration is asked about", func(t *testing.T) {
		for name, change := range materialChanges {
			r := newRig(t)
			p, c := r.person(), r.nice()
			p.approve(niceQuery())
			change(&c)
			r.replace(c)
			pg := p.get("/authorize?" + niceQuery("redirect_uri", c.RedirectURIs[0]).Encode())
			if pg.status != http.StatusOK || pg.header.Get("Location") != "" {
				t.Errorf("%s: got %d %v", name, pg.status, pg.header)
			}
		}
	})
	t.Run("H2 AS-77 a changed document is asked about, an unchanged one is not", func(t *testing.T) {
		r, d := newDocumentRig(t)
		p := r.person()
		p.approve(documentQuery(d))
		if got := responseOf(t, p.get("/authorize?"+documentQuery(d).Encode())); !got.Has("code") {
			t.Fatalf("unchanged: got %v", got)
		}
		d.doc.RedirectURIs = append(d.doc.RedirectURIs, evil)
		wantPage(t, p.get("/authorize?"+documentQuery(d).Encode()))
		wantPage(t, p.get("/authorize?"+documentQuery(d, "redirect_uri", evil).Encode()), "evil.example")
		p.approve(documentQuery(d))
		wantPage(t, p.get("/authorize?"+documentQuery(d, "redirect_uri", evil).Encode()), "evil.example")
		d.doc.Name = "Claude"
		wantPage(t, p.get("/authorize?"+documentQuery(d).Encode()), "Claude")
	})
	t.Run("H2 AS-60 errors go by themselves to an approved place only", func(t *testing.T) {
		r := newRig(t)
		p, c := r.person(), r.nice(redirectTo(claude, evil))
		p.approve(niceQuery("redirect_uri", claude))
		wrong := func(to string) page {
			return p.get("/authorize?" + niceQuery("redirect_uri", to, "code_challenge_method", "plain").Encode())
		}
		if pg := wrong(claude); pg.status != http.StatusSeeOther {
			t.Errorf("to the approved place: got %d", pg.status)
		}
		if pg := wrong(evil); pg.header.Get("Location") != "" || pg.header.Get("Refresh") != "" {
			t.Errorf("to another: the browser is sent to %s", pg.header.Get("Location"))
		}
		c.Name = "Claude"
		r.replace(c)
		if pg := wrong(claude); pg.header.Get("Location") != "" {
			t.Error("to a client that has changed since")
		}
	})
	t.Run("AS-77 the refresh token from before a change is good: it goes nowhere new", func(t *testing.T) {
		r := newRig(t)
		p, c := r.person(), r.nice()
		code := p.approve(niceQuery()).Get("code")
		_, out := p.token(codeForm(code, "client_id", "nice", "redirect_uri", ""))
		redirectTo(evil)(&c)
		r.replace(c)
		if status, again := p.token(refreshForm(out["refresh_token"], "client_id", "nice")); status != http.StatusOK {
			t.Errorf("got %d %v", status, again)
		}
	})
	t.Run("M2 RFC 8252 8.6 a public client of the operator on loopback is asked each time", func(t *testing.T) {
		for _, tt := range []struct {
			source   storage.ClientSource
			redirect string
			method   string
			asked    bool
		}{
			{storage.SourceStatic, "http://127.0.0.1/cb", "none", true},
			{storage.SourceConfig, "http://localhost/cb", "none", true},
			{storage.SourceStatic, "cursor://cb", "none", true},
			{storage.SourceStatic, "https://app.example.com/cb", "none", false},
			{storage.SourceStatic, "http://127.0.0.1/cb", "client_secret_basic", false},
			{storage.SourceDynamic, "http://127.0.0.1/cb", "none", false},
		} {
			r := newRig(t)
			p := r.person()
			r.nice(func(c *storage.Client) {
				c.Source, c.RedirectURIs, c.AuthMethod = tt.source, []string{tt.redirect}, tt.method
			})
			p.approve(niceQuery())
			pg := p.get("/authorize?" + niceQuery().Encode())
			if asked := pg.status == http.StatusOK && strings.Contains(pg.body, `value="approve"`); asked != tt.asked {
				t.Errorf("%+v: got %d", tt, pg.status)
			}
		}
	})
}

// Security M1: the end of access also ends the approval.
func TestAccessThatWasTakenAwayIsAskedForAgain(t *testing.T) {
	for name, cut := range map[string]func(*rig, string) error{
		"grant revoke": func(r *rig, grant string) error {
			return r.store.WithdrawGrant(r.t.Context(), grant, storage.ByOperator, r.now())
		},
		"user passwd": func(r *rig, _ string) error {
			return r.Users().SetPassword(r.t.Context(), "alice", "correct horse battery", false)
		},
		"user disable, enable": func(r *rig, _ string) error {
			if err := r.Users().Disable(r.t.Context(), "alice"); err != nil {
				return err
			}
			return r.Users().Enable(r.t.Context(), "alice")
		},
	} {
		t.Run("M1 "+name, func(t *testing.T) {
			r := newRig(t)
			p := r.person()
			r.nice()
			p.approve(niceQuery())
			all, err := r.store.ListGrants(t.Context(), "", "nice", "", 2)
			if err != nil || len(all) != 1 {
				t.Fatalf("got %v, %v", all, err)
			}
			if err := cut(r, all[0].ID); err != nil {
				t.Fatal(err)
			}
			pg := p.get("/authorize?" + niceQuery().Encode())
			if strings.Contains(pg.body, `name="password"`) {
				r.advance(time.Second) // a sign-in must not begin in the same moment when all sessions end
				pg = p.login(niceQuery())
			}
			wantPage(t, pg, "nice.example")
		})
	}
	t.Run("RFC 7009 a client that gives its token back is not forgotten", func(t *testing.T) {
		r := newRig(t)
		p := r.person()
		out := p.signIn()
		if pg := p.post("/revoke",
			url.Values{"token": {out["refresh_token"].(string)}, "client_id": {"app"}}); pg.status != http.StatusOK {
			t.Fatalf("got %d", pg.status)
		}
		if got := responseOf(t, p.get("/authorize?"+authorizeQuery().Encode())); !got.Has("code") {
			t.Errorf("got %v", got)
		}
	})
}

// stale is the view of another replica that does not know of a change yet.
type stale struct {
	storage.Clients
	mu  sync.Mutex // guards old
	old map[string]storage.Client
}

func (c *stale) Client(ctx context.Context, id string) (storage.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.old[id]; ok {
		return old, nil
	}
	return c.Clients.Client(ctx, id)
}

func (c *stale) Current(ctx context.Context, id string) (storage.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.old, id)
	return c.Clients.Client(ctx, id)
}

func (c *stale) keep(old storage.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.old = map[string]storage.Client{old.ID: old}
}

// Security L8: a replica that does not know of a change gives nothing to the old client.
func TestStaleClients(t *testing.T) {
	old := &stale{}
	r := newRig(t, func(c *Config) { old.Clients, c.Registry = c.Store, &registry{Clients: old} })
	t.Run("L8 a silent code", func(t *testing.T) {
		p, c := r.person(), r.nice()
		p.approve(niceQuery())
		old.keep(c)
		redirectTo(evil)(&c)
		r.replace(c)
		wantPage(t, p.get("/authorize?"+niceQuery().Encode()), "evil.example")
	})
	t.Run("L8 H1 the page and the click, both by the client of before", func(t *testing.T) {
		p, c := r.person(), r.nice(func(c *storage.Client) { c.Name = "Nicer" })
		before := p.login(niceQuery())
		old.keep(c)
		redirectTo(evil)(&c)
		r.replace(c)
		wantPage(t, p.post("/consent", url.Values{"step": {consentStep(t, before)}, "decision": {"approve"}}),
			"evil.example")
	})
	t.Run("L8 H1 a click on what the store does not confirm asks again", func(t *testing.T) {
		p, c := r.person(), r.nice(func(c *storage.Client) { c.Name = "Nicest" })
		before := p.login(niceQuery())
		r.restart(func(as *Config) { as.Registry = &registry{Clients: &frozen{c}} })
		defer r.restart(func(as *Config) { as.Registry = &registry{Clients: old} })
		redirectTo(evil)(&c)
		r.replace(c)
		wantPage(t, p.post("/consent", url.Values{"step": {consentStep(t, before)}, "decision": {"approve"}}),
			"nice.example")
	})
	t.Run("L8 a client that the store never confirms is an outage, not a code", func(t *testing.T) {
		p, c := r.person(), r.nice()
		p.approve(niceQuery())
		frozen := &frozen{c}
		r.restart(func(as *Config) { as.Registry = &registry{Clients: frozen} })
		defer r.restart(func(as *Config) { as.Registry = &registry{Clients: old} })
		redirectTo(evil)(&c)
		r.replace(c)
		if pg := p.get("/authorize?" + niceQuery().Encode()); pg.status != http.StatusServiceUnavailable ||
			pg.header.Get("Location") != "" {
			t.Errorf("got %d %v", pg.status, pg.header)
		}
	})
	t.Run("L8 H1 a click for a client that was deleted elsewhere leads nowhere", func(t *testing.T) {
		p, c := r.person(), r.nice(func(c *storage.Client) { c.Name = "Gone" })
		before := p.login(niceQuery())
		old.keep(c)
		if err := r.store.DeleteClient(t.Context(), c.ID, r.now()); err != nil {
			t.Fatal(err)
		}
		pg := p.post("/consent", url.Values{"step": {consentStep(t, before)}, "decision": {"approve"}})
		if pg.status != http.StatusBadRequest || !strings.Contains(pg.body, "This application is not known here") {
			t.Errorf("got %d to %q: %s", pg.status, pg.header.Get("Location"), pg.body)
		}
	})
}

// frozen returns one client, whatever the store contains.
type frozen struct{ c storage.Client }

func (f *frozen) Client(context.Context, string) (storage.Client, error) { return f.c, nil }
