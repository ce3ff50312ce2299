package authserver

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

var errNotNow = oauth.NewError(oauth.TemporarilyUnavailable,
	"Google could not be reached. Please try again in a minute.")

func TestBindingAtRefresh(t *testing.T) {
	r, f := delegated(t)
	t.Run("AS-218 the provider is asked before a refresh token is rotated", func(t *testing.T) {
		p := r.person()
		out := p.signInAt("google")
		f.set(func(f *providers) { f.checkedAge = nil })
		if status, out := p.token(refreshForm(out["refresh_token"])); status != 200 ||
			!slices.Equal(f.checkedAge, []time.Duration{10 * time.Second}) {
			t.Errorf("got %d %v, asked %v", status, out, f.checkedAge)
		}
	})
	t.Run("AS-218 AS-219 a session that has ended: invalid_grant", func(t *testing.T) {
		p := r.person()
		out := p.signInAt("google")
		f.end(t, "google")
		status, answer := p.token(refreshForm(out["refresh_token"]))
		wantError(t, status, answer, 400, oauth.InvalidGrant)
	})
	t.Run("AS-218 AS-223 the provider cannot be asked: 503, and the token is not spent", func(t *testing.T) {
		p := r.person()
		out := p.signInAt("google")
		f.set(func(f *providers) { f.checkErr = errNotNow })
		pg := p.post("/token", refreshForm(out["refresh_token"]))
		if pg.status != 503 || pg.header.Get("Retry-After") == "" ||
			!strings.Contains(pg.body, "temporarily_unavailable") {
			t.Errorf("got %d %v %s", pg.status, pg.header, pg.body)
		}
		f.set(func(f *providers) { f.checkErr = nil })
		r.advance(2 * time.Minute) // past the grace period: a spent one would be reuse
		if status, out := p.token(refreshForm(out["refresh_token"])); status != 200 {
			t.Errorf("got %d %v", status, out)
		}
	})
	t.Run("AS-96 a retried refresh gets the same reply, also of a bound grant", func(t *testing.T) {
		p := r.person()
		out := p.signInAt("google")
		_, first := p.token(refreshForm(out["refresh_token"]))
		if status, again := p.token(refreshForm(out["refresh_token"])); status != 200 ||
			again["refresh_token"] != first["refresh_token"] {
			t.Errorf("got %d %v", status, again)
		}
	})
	t.Run("AS-219 policy narrows a refresh", func(t *testing.T) {
		p := r.person()
		out := p.signInAt("google", "scope", "mcp notes:write offline_access")
		f.set(func(f *providers) { f.permitted = oauth.Scopes{"mcp"} })
		defer f.set(func(f *providers) { f.permitted = nil })
		status, narrowed := p.token(refreshForm(out["refresh_token"]))
		if status != 200 || narrowed["scope"] != "mcp offline_access" {
			t.Errorf("got %d %v", status, narrowed)
		}
		f.set(func(f *providers) { f.permitted = oauth.Scopes{"other"} })
		status, answer := p.token(refreshForm(narrowed["refresh_token"]))
		wantError(t, status, answer, 400, oauth.InvalidGrant)
		f.set(func(f *providers) { f.permitted = nil })
		r.advance(2 * time.Minute)
		if status, wide := p.token(refreshForm(narrowed["refresh_token"])); status != 200 ||
			wide["scope"] != "mcp notes:write offline_access" {
			t.Errorf("it was spent: got %d %v", status, wide)
		}
	})
	t.Run("AS-218 a grant of a password rests on nothing", func(t *testing.T) {
		p := r.person()
		out := p.signIn()
		f.set(func(f *providers) { f.checkedAge = nil })
		if status, _ := p.token(refreshForm(out["refresh_token"])); status != 200 || f.checkedAge != nil {
			t.Errorf("got %d, asked %v", status, f.checkedAge)
		}
	})
}

func TestBindingAtIntrospection(t *testing.T) {
	r, f := delegated(t)
	p := r.person()
	out := p.signInAt("google")
	token := out["access_token"].(string)
	introspect := func() page {
		return p.post("/introspect", url.Values{"token": {token}}, "Authorization", basic("machine", testSecret))
	}
	f.set(func(f *providers) { f.checkedAge = nil })
	t.Run("AS-218 the provider's interval decides", func(t *testing.T) {
		if pg := introspect(); !strings.Contains(pg.body, `"active":true`) ||
			!slices.Equal(f.checkedAge, []time.Duration{0}) {
			t.Errorf("got %s, asked %v", pg.body, f.checkedAge)
		}
	})
	t.Run("AS-218 AS-223 the provider cannot be asked: 503", func(t *testing.T) {
		f.set(func(f *providers) { f.checkErr = errNotNow })
		defer f.set(func(f *providers) { f.checkErr = nil })
		if pg := introspect(); pg.status != 503 || pg.header.Get("Retry-After") == "" {
			t.Errorf("got %d", pg.status)
		}
		if in, err := r.Introspect(t.Context(), token); in.Active || err == nil {
			t.Errorf("got %+v, %v", in, err)
		}
	})
	t.Run("AS-218 a session that the provider says has ended: inactive, and that only", func(t *testing.T) {
		f.set(func(f *providers) { f.checkErr = storage.ErrRevoked })
		defer f.set(func(f *providers) { f.checkErr = nil })
		if pg := introspect(); strings.TrimSpace(pg.body) != `{"active":false}` {
			t.Errorf("got %s", pg.body)
		}
		if in, err := r.grants.tokens.IntrospectFor(t.Context(),
			storage.Client{ID: "app", AuthMethod: "client_secret_basic"}, out["refresh_token"].(string)); in.Active ||
			err != nil {
			t.Errorf("a refresh token: got %+v, %v", in, err)
		}
	})
	t.Run("AS-218 AS-219 a session that has ended", func(t *testing.T) {
		f.end(t, "google")
		if pg := introspect(); strings.TrimSpace(pg.body) != `{"active":false}` {
			t.Errorf("got %s", pg.body)
		}
	})
}

func TestBindingInTheBrowser(t *testing.T) {
	r, f := delegated(t)
	t.Run("AS-218 AS-219 after a session has ended nobody is signed in, and the page says why", func(t *testing.T) {
		p := r.person()
		p.signInAt("google")
		f.end(t, "google")
		for path, want := range map[string]string{
			"/authorize?" + authorizeQuery().Encode():                     `name="password"`,
			"/authorize?" + authorizeQuery("provider", "google").Encode(): "You will sign in at",
			"/": "You are not signed in",
		} {
			if pg := p.get(path); pg.status != 200 || !strings.Contains(pg.body, want) ||
				!strings.Contains(pg.body, "Notice from google: logged-out.") {
				t.Errorf("%s: got %d %s", path, pg.status, pg.body)
			}
		}
		if pg := r.person().get("/"); strings.Contains(pg.body, "EndNotice") {
			t.Error("a stranger gets a letter")
		}
	})
	t.Run("AS-218 the provider is asked before a code is issued", func(t *testing.T) {
		p := r.person()
		p.signInAt("google")
		f.set(func(f *providers) { f.checkErr = storage.ErrRevoked })
		if pg := p.get("/authorize?" + authorizeQuery("provider", "google").Encode()); pg.status != 200 ||
			!strings.Contains(pg.body, "You will sign in at") {
			t.Errorf("got %d %v", pg.status, pg.header)
		}
		f.set(func(f *providers) { f.checkErr = errNotNow })
		if pg := p.get("/authorize?" + authorizeQuery().Encode()); pg.status != 503 ||
			pg.header.Get("Retry-After") == "" {
			t.Errorf("got %d %v", pg.status, pg.header)
		}
		f.set(func(f *providers) { f.checkErr = nil })
		if got := responseOf(t, p.confirm(p.get("/authorize?"+authorizeQuery().Encode()))); !got.Has("code") {
			t.Errorf("got %v", got)
		}
	})
	t.Run("AS-218 and before consent becomes a code", func(t *testing.T) {
		p := r.person()
		p.signInAt("google")
		approve := func() page {
			pg := p.get("/authorize?" + authorizeQuery("prompt", "consent").Encode())
			step := consentStep(t, pg)
			f.set(func(f *providers) { f.checkErr = storage.ErrRevoked })
			defer f.set(func(f *providers) { f.checkErr = nil })
			return p.post("/consent", url.Values{"step": {step}, "decision": {"approve"}})
		}
		if pg := approve(); pg.status != 200 || pg.header.Get("Location") != "" ||
			!strings.Contains(pg.body, "Continue with") {
			t.Errorf("got %d %v", pg.status, pg.header)
		}
	})
	t.Run("AS-111 policy narrows what is asked and what is granted", func(t *testing.T) {
		f.set(func(f *providers) { f.permitted = oauth.Scopes{"mcp"} })
		defer f.set(func(f *providers) { f.permitted = nil })
		p := r.person()
		if out := p.signInAt("google", "scope", "mcp notes:write"); out["scope"] != "mcp" {
			t.Errorf("got %v", out)
		}
		pg := p.get("/authorize?" + authorizeQuery("scope", "mcp notes:write", "prompt", "consent").Encode())
		if strings.Contains(pg.body, "add notes") {
			t.Error("the page offers unavailable scopes")
		}
		got := responseOf(t, p.post("/consent", url.Values{"step": {consentStep(t, pg)}, "decision": {"approve"}}))
		if _, out := p.token(codeForm(got.Get("code"))); out["scope"] != "mcp" {
			t.Errorf("got %v", out)
		}
		if got := responseOf(t,
			p.get("/authorize?"+authorizeQuery("scope", "notes:write").Encode())); got.Get("error") != "access_denied" {
			t.Errorf("got %v", got)
		}
	})
	t.Run("RU-17 a rule that keeps what every call needs refuses the person", func(t *testing.T) {
		f.set(func(f *providers) { f.permitted = oauth.Scopes{"notes:write"} })
		defer f.set(func(f *providers) { f.permitted = nil })
		p := r.person()
		p.signInAt("google", "scope", "notes:write")
		got := responseOf(t, p.get("/authorize?"+authorizeQuery("scope", "mcp notes:write").Encode()))
		if got.Get("error") != "access_denied" {
			t.Errorf("got %v", got)
		}
	})
	t.Run("'Not you?' asks the provider who it is", func(t *testing.T) {
		p := r.person()
		p.signInAt("google")
		pg := p.get("/authorize?" + authorizeQuery("prompt", "consent").Encode())
		pg = p.get(linkTo(t, pg, "select_account"))
		to := linkTo(t, pg, "account=another")
		pg = p.get(to)
		if !strings.Contains(to, "select_account") || !strings.Contains(pg.body, "Continue with <bdi>GitHub") {
			t.Fatalf("got %q %s", to, pg.body)
		}
		p.leave(mustURL(t, strings.Replace(to, "provider=%2A", "provider=google", 1)).Query())
		if trip := f.departed[len(f.departed)-1]; !trip.Choose || trip.Reauth != "" {
			t.Errorf("got %+v", trip)
		}
	})
}

// Removing a provider from the configuration ends the grants that depend on it.
func TestBindingsGone(t *testing.T) {
	r, _ := delegated(t)
	p := r.person()
	out := p.signInAt("google")
	code := responseOf(t, p.confirm(p.get("/authorize?"+authorizeQuery().Encode()))).Get("code")
	r.restart(func(c *Config) { c.Delegation = nil })
	t.Run("AS-218 codes", func(t *testing.T) {
		status, answer := p.token(codeForm(code))
		wantError(t, status, answer, 400, oauth.InvalidGrant)
	})
	t.Run("AS-218 introspection", func(t *testing.T) {
		if in, err := r.Introspect(t.Context(), out["access_token"].(string)); in.Active || err != nil {
			t.Errorf("got %+v, %v", in, err)
		}
	})
	t.Run("AS-218 refresh", func(t *testing.T) {
		status, answer := p.token(refreshForm(out["refresh_token"]))
		wantError(t, status, answer, 400, oauth.InvalidGrant)
	})
	t.Run("AS-218 the start page", func(t *testing.T) {
		if pg := p.get("/"); !strings.Contains(pg.body, "You are not signed in") {
			t.Errorf("got %s", pg.body)
		}
	})
	t.Run("AS-218 browser sessions", func(t *testing.T) {
		if pg := p.get("/authorize?" + authorizeQuery().Encode()); pg.status != 200 ||
			!strings.Contains(pg.body, `name="password"`) {
			t.Errorf("got %d", pg.status)
		}
	})
}
