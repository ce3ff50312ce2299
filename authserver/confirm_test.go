package authserver

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// answerAccount answers the page that names the account.
func (p *person) answerAccount(pg page, decision string, more ...string) page {
	p.t.Helper()
	form := url.Values{"step": {consentStep(p.t, pg)}, "decision": {decision}}
	for i := 0; i+1 < len(more); i += 2 {
		form.Add(more[i], more[i+1])
	}
	return p.post("/consent", form)
}

// namesAccount fails the test unless a page names the account. The client must have received
// nothing yet.
func namesAccount(t *testing.T, pg page, account string) {
	t.Helper()
	csp := pg.header.Get("Content-Security-Policy")
	if pg.status != http.StatusOK || !strings.Contains(pg.body, "Continue as <bdi>"+account+"</bdi>?") ||
		!strings.Contains(pg.body, "Use another account") || pg.header.Get("Location") != "" ||
		pg.header.Get("X-Frame-Options") != "DENY" || strings.Contains(csp, "form-action") {
		t.Fatalf("got %d %v %.300s", pg.status, pg.header, pg.body)
	}
}

// TestAccountIsNamed checks that a page names the account before an application gets it, at the
// first and at a second connection (RU-15). The user can choose another account there.
func TestAccountIsNamed(t *testing.T) {
	r, f := delegated(t, func(c *Config) { c.NoLocalLogin = true })
	f.list = f.list[:1]
	r.restart()
	start := func(p *person, change ...string) page {
		return p.get(callback(t, "google", p.leave(authorizeQuery(change...))))
	}
	t.Run("the first time, after the provider", func(t *testing.T) {
		p := r.person()
		pg := start(p, "scope", "mcp notes:write")
		namesAccount(t, pg, "ada@example.com")
		_, out := p.token(codeForm(responseOf(t, p.answerAccount(pg, "approve")).Get("code")))
		if out["scope"] != "mcp notes:write" {
			t.Errorf("got %v", out)
		}
	})
	t.Run("but not if the provider gave no name for it", func(t *testing.T) {
		f.nameless = true
		defer func() { f.nameless = false }()
		responseOf(t, start(r.person()))
	})
	t.Run("the choice of the page before stands, whatever this form says", func(t *testing.T) {
		p := r.person()
		shown := p.get("/authorize?" + authorizeQuery("scope", "mcp notes:write").Encode())
		left := p.post("/consent", url.Values{
			"step": {consentStep(t, shown)}, "decision": {"approve"}, "preset": {"choose"}, "scope": {"mcp"},
		})
		pg := p.answerAccount(p.get(callback(t, "google", left)), "approve", "preset", "all", "scope", "notes:write")
		_, out := p.token(codeForm(responseOf(t, pg).Get("code")))
		if out["scope"] != "mcp" {
			t.Errorf("got %v", out)
		}
	})
	t.Run("once: a second answer is the same, and one in another browser is none", func(t *testing.T) {
		p := r.person()
		pg := start(p)
		stranger := r.person()
		stranger.get("/")
		if got := stranger.answerAccount(pg, "approve"); got.status != http.StatusBadRequest {
			t.Errorf("another browser: got %d", got.status)
		}
		first := responseOf(t, p.answerAccount(pg, "approve")).Get("code")
		if again := responseOf(t, p.answerAccount(pg, "approve")).Get("code"); first == "" || again != first {
			t.Errorf("got %q and then %q", first, again)
		}
		if got := p.answerAccount(pg, "deny"); got.header.Get("Location") != "" {
			t.Errorf("a no after a yes: got %v", got.header)
		}
	})
	t.Run("no, and no answer", func(t *testing.T) {
		p := r.person()
		pg := start(p)
		if got := p.answerAccount(pg, ""); got.status != http.StatusBadRequest || got.header.Get("Location") != "" {
			t.Errorf("got %d %v", got.status, got.header)
		}
		if got := responseOf(t, p.answerAccount(pg, "deny")); got.Get("error") != string(oauth.AccessDenied) {
			t.Errorf("got %v", got)
		}
	})
	t.Run("another account: back to the provider, which lets people choose", func(t *testing.T) {
		p := r.person()
		f.set(func(f *providers) { f.person = "wrong" })
		pg := start(p, "login_hint", "wrong@example.com", "max_age", "60")
		namesAccount(t, pg, "wrong@example.com")
		f.set(func(f *providers) { f.person = "ada" })
		left := p.answerAccount(pg, "another")
		trip := f.departed[len(f.departed)-1]
		if !trip.Choose || trip.LoginHint != "" || trip.Reauth == "" || trip.Provider != "google" {
			t.Errorf("got %+v", trip)
		}
		pg = p.get(callback(t, "google", left))
		namesAccount(t, pg, "ada@example.com")
		_, out := p.token(codeForm(responseOf(t, p.answerAccount(pg, "approve")).Get("code")))
		if sub := r.verified(t, out["access_token"].(string)).Subject; sub != "usr_googleada" {
			t.Errorf("the application gets %s", sub)
		}
	})
}

var anotherLink = regexp.MustCompile(`href="([^"]*select_account[^"]*)"`)

// TestAccountIsNamedAgain checks the same for a connection that was approved before (RU-15).
func TestAccountIsNamedAgain(t *testing.T) {
	r, _ := delegated(t)
	p := r.person()
	p.signInAt("google")
	pg := p.get("/authorize?" + authorizeQuery().Encode())
	namesAccount(t, pg, "ada@example.com")
	if !anotherLink.MatchString(pg.body) {
		t.Errorf("no way to another account in %s", pg.body)
	}
	if got := responseOf(t, p.answerAccount(pg, "approve")); !got.Has("code") {
		t.Errorf("got %v", got)
	}
	t.Run("prompt=none stays silent", func(t *testing.T) {
		if got := responseOf(t, p.get("/authorize?"+authorizeQuery("prompt", "none").Encode())); !got.Has("code") {
			t.Errorf("got %v", got)
		}
	})
	t.Run("no", func(t *testing.T) {
		pg := p.get("/authorize?" + authorizeQuery().Encode())
		if got := responseOf(t, p.answerAccount(pg, "deny")); got.Get("error") != string(oauth.AccessDenied) {
			t.Errorf("got %v", got)
		}
	})
	t.Run("what is not as it was on the page is asked about again", func(t *testing.T) {
		pg := p.get("/authorize?" + authorizeQuery().Encode())
		if err := r.store.ForgetConsent(t.Context(), "usr_googleada", "app", testResource, r.now()); err != nil {
			t.Fatal(err)
		}
		got := p.answerAccount(pg, "approve")
		if got.status != http.StatusOK || !strings.Contains(got.body, "Approve access?") {
			t.Errorf("a forgotten approval: got %d %.200s", got.status, got.body)
		}
		p.answerAccount(got, "approve")
		pg = p.get("/authorize?" + authorizeQuery().Encode())
		namesAccount(t, pg, "ada@example.com")
		p.login(authorizeQuery("account", "another"))
		if got := p.answerAccount(pg, "approve"); got.header.Get("Location") != "" {
			t.Errorf("another person is signed in: got %v", got.header)
		}
	})
	t.Run("a person who typed the name of the account goes on without a page", func(t *testing.T) {
		p := r.person()
		p.approve(authorizeQuery())
		if got := responseOf(t, p.get("/authorize?"+authorizeQuery().Encode())); !got.Has("code") {
			t.Errorf("got %v", got)
		}
	})
}
