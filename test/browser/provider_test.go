package browser

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// provider is an identity provider on other origins, with its delegation. It shows no page, as if
// the user were already signed in. The browser goes from the first origin to the second, which is
// not known in advance, and comes back.
type provider struct {
	authserver.Delegation
	store *sqlite.Store
	front string // origin that is known
	back  string // origin that it redirects to
	home  string // our callback
	form  bool   // respond with a form
	trips map[string]delegation.Request
	fail  error
}

func (p *provider) Providers() []delegation.Provider {
	return []delegation.Provider{
		{ID: "company", Name: "Example Company", Icon: "keycloak", Host: strings.TrimPrefix(p.front, "http://")},
	}
}
func (*provider) OffersTokens() bool    { return false }
func (*provider) Logout() http.Handler  { return nil }
func (p *provider) Route(string) string { return "" }
func (p *provider) Depart(_ context.Context, t delegation.Request) (delegation.AuthorizationRequest, error) {
	d := delegation.AuthorizationRequest{
		State: secrets.Token(""), Binding: secrets.Token(""), ExpiresAt: time.Now().Add(10 * time.Minute),
	}
	d.URL = p.front + "/authorize?state=" + d.State
	p.trips[d.State+d.Binding] = t
	return d, nil
}
func (p *provider) Return(ctx context.Context, r delegation.AuthorizationResponse) (delegation.Result, error) {
	key := r.Params.Get("state") + r.Binding
	trip, ok := p.trips[key]
	if !ok {
		return delegation.Result{}, oauth.NewError(oauth.InvalidRequest, "No such trip.")
	}
	delete(p.trips, key)
	if p.fail != nil {
		return delegation.Result{Request: trip}, p.fail
	}
	now := time.Now()
	u, err := p.store.Arrive(ctx, storage.Arrival{
		Asked: true,
		Identity: storage.Identity{
			Connector: "company", Subject: "ada", UserID: trip.UserID, Label: "ada@example.com", CreatedAt: now,
			LastUsedAt: now,
		},
		NewUser: &storage.User{ID: "usr_ada", Name: "ada@company", CreatedAt: now},
		Upstream: storage.Upstream{
			ID: secrets.ID("ups_"), Connector: "company", Subject: "ada", Sealed: []byte("x"), Version: 1,
			CreatedAt: now, CheckedAt: now, DueAt: now.Add(time.Hour),
		},
		Session: &r.Session, Now: now,
	})
	return delegation.Result{Request: trip, User: u, Came: "ada@example.com"}, err
}
func (p *provider) Claim(context.Context, string, string) (delegation.Result, error) {
	return delegation.Result{}, oauth.NewError(oauth.InvalidRequest, "No such claim.")
}
func (p *provider) Disclaim(context.Context, string, string) error     { return nil }
func (p *provider) Check(context.Context, string, time.Duration) error { return nil }
func (p *provider) Permit(_ context.Context, _, _ string, s oauth.Scopes) (oauth.Scopes, string, error) {
	return s, "", nil
}
func (p *provider) Identities(ctx context.Context, user string) ([]storage.Identity, error) {
	return p.store.Identities(ctx, user)
}
func (p *provider) Disconnect(context.Context, string, string, string, storage.Hash) error {
	return storage.ErrSpent
}

func (p *provider) answer(w http.ResponseWriter, r *http.Request) {
	q := url.Values{"state": {r.URL.Query().Get("state")}, "code": {"c"}}
	if !p.form {
		http.Redirect(w, r, p.home+"?"+q.Encode(), http.StatusFound)
		return
	}
	fmt.Fprintf(w,
		`<!doctype html><title>provider</title><main><form method="post" action="%s"><input type="hidden" name="state" value="%s"><input type="hidden" name="code" value="c"><button id="go">Go</button></form></main>`,
		p.home, q.Get("state"))
}

// newProvider serves an authorization server with passwords and one provider. It returns a Demo, so
// that the application of the other tests can use it.
func newProvider(t *testing.T) (*provider, *demotest.Demo) {
	t.Helper()
	store := installation.Store(t)
	mux := http.NewServeMux()
	ours := httptest.NewServer(mux)
	t.Cleanup(ours.Close)
	p := &provider{store: store, home: ours.URL + "/callback/company", trips: map[string]delegation.Request{}}
	p.back = elsewhere(t, p.answer)
	p.front = elsewhere(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, p.back+"/?"+r.URL.RawQuery, http.StatusFound)
	})
	const mcp = "https://notes.example.com/mcp"
	as, err := authserver.Assemble(t.Context(), authserver.Config{
		Issuer: ours.URL, Store: store, SecretKeys: [][]byte{bytes.Repeat([]byte{7}, 32)}, Delegation: p,
		Resources: []storage.Resource{
			{URI: mcp, Name: "Team notes",
				Scopes: []storage.ScopeText{{Name: "mcp", Description: "Use the tools of this server", Default: true}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	as.Register(mux)
	return p, &demotest.Demo{Issuer: ours.URL, MCPURL: mcp}
}

// elsewhere serves on another site: for a browser, localhost and 127.0.0.1 are different sites.
func elsewhere(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
}

// application returns an application that is stored with the id "app".
func (p *provider) application(t *testing.T) *app {
	t.Helper()
	a := serveApp(t)
	a.id = "app-" + secrets.Token("")[:6]
	if err := p.store.PutClient(t.Context(),
		storage.Client{
			ID: a.id, Name: "An App", RedirectURIs: []string{a.URL + "/callback"},
			GrantTypes: []string{"authorization_code"},
			AuthMethod: "none", Source: storage.SourceDynamic, CreatedAt: time.Now()}); err != nil {
		t.Fatal(err)
	}
	return a
}

// confirm confirms the account on the page after a provider.
func (b *tab) confirm(page string) {
	b.TB.Helper()
	b.Do(chromedp.WaitVisible(chromedp.CSS("button[value=another]")))
	if page != "" {
		b.inspect(page)
	}
	b.press("approve")
}

func TestProvider(t *testing.T) {
	lane.Long(t, "test/upstream signs in at real providers")
	t.Parallel()
	for _, l := range looks {
		t.Run("AS-43 AS-46 AS-222 sign in at a provider that redirects through unknown hosts: "+l.Name,
			func(t *testing.T) {
				p, d := newProvider(t)
				a, b := p.application(t), open(t, l)
				b.Do(chromedp.Navigate(a.link(d)))
				b.inspect("provider-login")
				b.Do(chromedp.Click(chromedp.CSS("a.choice")),
					chromedp.WaitVisible(chromedp.CSS("button[value=approve]")))
				b.inspect("provider-consent")
				b.press("approve")
				b.confirm("provider-account")
				if q := a.answer(t, b); q.Get("code") == "" || q.Get("state") != "s" || q.Get("iss") != d.Issuer {
					t.Errorf("got %v", q)
				}
				b.Do(chromedp.Navigate(d.Issuer + "/"))
				b.inspect("provider-home")
			})
	}
	l := looks[0]
	t.Run("AS-220 a provider that answers by a form: the cookie of the trip comes along", func(t *testing.T) {
		p, d := newProvider(t)
		p.form = true
		a, b := p.application(t), open(t, l)
		b.visit(a.link(d, "provider", "company"))
		b.press("approve")
		b.Do(chromedp.WaitVisible(chromedp.CSS("#go")), chromedp.Click(chromedp.CSS("#go")))
		b.confirm("")
		if q := a.answer(t, b); q.Get("code") == "" {
			t.Errorf("got %v", q)
		}
	})
	t.Run("AS-41 a denial before anything leaves", func(t *testing.T) {
		p, d := newProvider(t)
		a, b := p.application(t), open(t, l)
		b.Do(chromedp.Navigate(a.link(d, "provider", "company")), chromedp.Click(chromedp.CSS("button[value=deny]")))
		if q := a.answer(t, b); q.Get("error") != "access_denied" || len(p.trips) != 0 {
			t.Errorf("got %v", q)
		}
	})
	t.Run("AS-223 a failure is told, stays to be read, and is the application's when the person goes on",
		func(t *testing.T) {
			p, d := newProvider(t)
			p.fail = oauth.NewError(oauth.TemporarilyUnavailable,
				"Example Company could not be reached. Please try again in a minute.")
			a, b := p.application(t), open(t, l)
			b.visit(a.link(d, "provider", "company"))
			b.press("approve")
			b.Do(chromedp.WaitVisible(chromedp.CSS("[role=alert]")))
			b.inspect("provider-failed")
			b.Advance(time.Minute)
			b.Do(chromedp.WaitVisible(chromedp.CSS("dl.facts")),
				chromedp.Click(chromedp.CSS("a.button[rel=noreferrer]")))
			if q := a.answer(t, b); q.Get("error") != "temporarily_unavailable" {
				t.Errorf("got %v", q)
			}
		})
	t.Run("the start page signs in too", func(t *testing.T) {
		_, d := newProvider(t)
		b := open(t, l)
		b.Do(chromedp.Navigate(d.Issuer+"/"), chromedp.Click(chromedp.CSS("button.choice")),
			chromedp.WaitVisible(chromedp.CSS("ul.accounts")))
		if !strings.HasPrefix(b.Location(), d.Issuer+"/") {
			t.Errorf("at %s", b.Location())
		}
	})
}
