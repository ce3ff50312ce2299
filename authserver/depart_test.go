package authserver

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/authserver/internal/flow"
	"github.com/mcp-authd/mcp-authd/internal/cookie"
	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

func TestDeparture(t *testing.T) {
	r, f := delegated(t)
	atGoogle := func(change ...string) string {
		return "/authorize?" + authorizeQuery(append(change, "provider", "google")...).Encode()
	}
	t.Run("AS-222 AS-70 SP-01 our own consent comes first, and names everything", func(t *testing.T) {
		pg := r.person().get(atGoogle())
		for _, want := range []string{
			"An App", "127.0.0.1:33418", "https://mcp.example.com/mcp", "use the server", "Google",
			"accounts.google.com", `value="approve"`, `value="deny"`,
		} {
			if !strings.Contains(pg.body, want) {
				t.Errorf("no %q in the page", want)
			}
		}
	})
	t.Run("AS-220 AS-221 SP-04 before the approval there is no state and no cookie of it", func(t *testing.T) {
		pg := r.person().get(atGoogle())
		if len(f.departed) != 0 || len(tripCookies(pg)) != 0 || pg.header.Get("Location") != "" ||
			pg.header.Get("Refresh") != "" {
			t.Errorf("got %v, %v", f.departed, pg.header)
		}
	})
	t.Run("AS-220 AS-221 the approval sets the cookie and sends the browser away", func(t *testing.T) {
		p := r.person()
		pg := p.leave(authorizeQuery("provider", "google", "login_hint", "ada@example.com"))
		if pg.status != 303 ||
			!strings.HasPrefix(pg.header.Get("Location"), "https://idp.example.com/authorize?state=") ||
			len(tripCookies(pg)) != 1 {
			t.Fatalf("got %d %v", pg.status, pg.header)
		}
		c := tripCookies(pg)[0]
		if !strings.Contains(c, "HttpOnly") || !strings.Contains(c, "SameSite=Lax") ||
			!strings.Contains(c, "Max-Age=600") || strings.Contains(c, responseOf(t, pg).Get("state")) {
			t.Errorf("got %s", c)
		}
		if trip := f.departed[len(f.departed)-1]; trip.Provider != "google" || trip.UserID != "" ||
			trip.LoginHint != "ada@example.com" || trip.Reauth != "" {
			t.Errorf("got %+v", trip)
		}
	})
	t.Run("RU-01 no form-action holds a browser back on its way to the provider, or from there to the application",
		func(t *testing.T) {
			p := r.person()
			shown := p.get(atGoogle())
			if csp := shown.header.Get("Content-Security-Policy"); strings.Contains(csp, "form-action") {
				t.Errorf("got %s", csp)
			}
			pg := p.post("/consent", url.Values{"step": {consentStep(t, shown)}, "decision": {"approve"}},
				"Sec-Fetch-Dest", "document")
			if pg.status != 303 || len(tripCookies(pg)) != 1 ||
				!strings.HasPrefix(pg.header.Get("Location"), "https://idp.example.com/authorize?state=") {
				t.Errorf("got %d %v", pg.status, pg.header)
			}
		})
	t.Run("AS-41 SP-01 a denial goes to the client and nothing leaves", func(t *testing.T) {
		p, before := r.person(), len(f.departed)
		pg := p.post("/consent", url.Values{"step": {consentStep(t, p.get(atGoogle()))}, "decision": {"deny"}})
		if got := responseOf(t, pg); got.Get("error") != "access_denied" || got.Get("state") != "st-1" ||
			len(f.departed) != before || len(tripCookies(pg)) != 0 {
			t.Errorf("got %v", got)
		}
	})
	t.Run("AS-47 login CSRF: the approval of another browser, or from another site, is refused", func(t *testing.T) {
		before := len(f.departed)
		attackers := consentStep(t, r.person().get(atGoogle()))
		victim := r.person()
		own := consentStep(t, victim.get(atGoogle()))
		if pg := victim.post("/consent", url.Values{"step": {attackers}, "decision": {"approve"}}); pg.status != 400 {
			t.Errorf("got %d", pg.status)
		}
		if pg := victim.post("/consent", url.Values{"step": {own}, "decision": {"approve"}}, "Sec-Fetch-Site",
			"cross-site"); pg.status != 403 {
			t.Errorf("got %d", pg.status)
		}
		if pg := victim.post("/depart", url.Values{"step": {own}}); pg.status != 400 {
			t.Errorf("the step of another form: got %d", pg.status)
		}
		if len(f.departed) != before {
			t.Error("a browser was sent to the provider")
		}
	})
	t.Run("OIDC 3.1.2.1 prompt=login and max_age are for the provider to fulfil", func(t *testing.T) {
		for _, change := range [][]string{{"prompt", "login"}, {"max_age", "60"}} {
			r.person().leave(authorizeQuery(append(change, "provider", "google")...))
			if trip := f.departed[len(f.departed)-1]; trip.Reauth != delegation.ReauthProved {
				t.Errorf("%v: got %+v", change, trip)
			}
		}
	})
	t.Run("SP-01 a changed request is shown again, not carried on", func(t *testing.T) {
		p, before := r.person(), len(f.departed)
		pg := p.get("/authorize?" +
			authorizeQuery("provider", "google", "redirect_uri", "", "client_id", "changing").Encode())
		if pg.status != 400 {
			t.Fatalf("got %d", pg.status)
		}
		c := storage.Client{
			ID: "changing", Name: "Changing", RedirectURIs: []string{testRedirect},
			GrantTypes: []string{oauth.GrantCode}, AuthMethod: "none", Source: storage.SourceStatic,
			CreatedAt: r.now(),
		}
		if err := r.store.PutClient(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		step := consentStep(t,
			p.get("/authorize?"+
				authorizeQuery("provider", "google", "redirect_uri", "", "client_id", "changing").Encode()))
		c.RedirectURIs = []string{"https://evil.example.com/cb"}
		if err := r.store.ReplaceClient(t.Context(), c, r.now()); err != nil {
			t.Fatal(err)
		}
		for _, verdict := range []string{"approve", "deny"} {
			pg = p.post("/consent", url.Values{"step": {step}, "decision": {verdict}})
			if pg.status != 200 || !strings.Contains(pg.body, "evil.example.com") ||
				pg.header.Get("Location") != "" || len(f.departed) != before {
				t.Errorf("%s: got %d %v", verdict, pg.status, pg.header)
			}
		}
		step = consentStep(t, pg)
		c.Name = "Your Bank"
		if err := r.store.ReplaceClient(t.Context(), c, r.now()); err != nil {
			t.Fatal(err)
		}
		pg = p.post("/consent", url.Values{"step": {step}, "decision": {"approve"}})
		if pg.status != 200 || !strings.Contains(pg.body, "Your Bank") || len(f.departed) != before {
			t.Errorf("PL6 another name: got %d %v", pg.status, pg.header)
		}
	})
}

func TestConfusedDeputy(t *testing.T) {
	r, f := delegated(t)
	p := r.person()
	p.signInAt("google")
	evil := storage.Client{ID: "evil", Name: "Totally Your App", RedirectURIs: []string{"https://evil.example.com/cb"},
		GrantTypes: []string{oauth.GrantCode}, AuthMethod: "none", Source: storage.SourceDynamic, CreatedAt: r.now()}
	if err := r.store.PutClient(t.Context(), evil); err != nil {
		t.Fatal(err)
	}
	query := authorizeQuery("client_id", "evil", "redirect_uri", "https://evil.example.com/cb", "provider", "google")
	t.Run("SP-01 SP-02 a person who is signed in, at the provider too, is asked about a client", func(t *testing.T) {
		pg := p.get("/authorize?" + query.Encode())
		if pg.status != 200 || pg.header.Get("Location") != "" || !strings.Contains(pg.body, "evil.example.com") {
			t.Errorf("got %d %v", pg.status, pg.header)
		}
	})
	t.Run("SP-01 SP-02 AS-222 without a session the person is asked before anything is sent", func(t *testing.T) {
		before := len(f.departed)
		pg := r.person().get("/authorize?" + query.Encode())
		if pg.status != 200 || pg.header.Get("Location") != "" || pg.header.Get("Refresh") != "" ||
			!strings.Contains(pg.body, "evil.example.com") || len(f.departed) != before {
			t.Errorf("got %d %v", pg.status, pg.header)
		}
	})
	t.Run("AS-224 SP-03 a redirect URI that is not registered never gets as far", func(t *testing.T) {
		for _, uri := range []string{
			"https://evil.example.com/cb2", "https://evil.example.com/cb/",
			"https://evil.example.com.attacker.example/cb", "javascript:alert(1)",
		} {
			q := authorizeQuery("client_id", "evil", "redirect_uri", uri, "provider", "google")
			if pg := r.person().get("/authorize?" + q.Encode()); pg.status != 400 || pg.header.Get("Location") != "" {
				t.Errorf("%s: got %d", uri, pg.status)
			}
		}
	})
	t.Run("AS-74 SP-02 a client that the person has allowed is answered without leaving again", func(t *testing.T) {
		before := len(f.departed)
		if got := responseOf(t,
			p.confirm(p.get("/authorize?"+authorizeQuery("provider", "google").Encode()))); !got.Has("code") ||
			len(f.departed) != before {
			t.Errorf("got %v", got)
		}
	})
}

func TestHomeDeparture(t *testing.T) {
	r, f := delegated(t)
	p := r.person()
	choice := func(pg page, label string) string { return stepBeside(t, pg, label) }
	t.Run("PE-09 a person signs in on the start page and comes to the account page", func(t *testing.T) {
		pg := p.post("/depart", url.Values{"step": {choice(p.get("/"), "Continue with <bdi>GitHub")}})
		back := p.back(callback(t, "github", pg))
		if back.status != 303 || back.header.Get("Location") != "/account" {
			t.Fatalf("got %d %v", back.status, back.header)
		}
		if home := p.get("/account"); !strings.Contains(home.body, "ada@github") ||
			!strings.Contains(home.body, "Your only way to sign in") || strings.Contains(home.body, "/disconnect") {
			t.Errorf("got %s", home.body)
		}
	})
	t.Run("a linked account is tied to the person who is signed in, and proven by signing in there", func(t *testing.T) {
		pg := p.post("/depart", url.Values{"step": {choice(p.get("/account"), "Link your <bdi>Google")}})
		trip := f.departed[len(f.departed)-1]
		if trip.Purpose != "link" || trip.UserID != "usr_githubada" {
			t.Fatalf("got %+v", trip)
		}
		before := sessionCookie(p)
		asked := claimStep(t, p.back(callback(t, "google", pg))) // PM1
		if back := p.post("/claim", url.Values{"step": {asked}, "decision": {"approve"}}); back.status != 303 ||
			back.header.Get("Location") != "/account" {
			t.Fatalf("got %d %v", back.status, back.header)
		}
		ids, err := r.store.Identities(t.Context(), "usr_githubada")
		if err != nil || len(ids) != 2 || sessionCookie(p) != before {
			t.Errorf("got %v, %v", ids, err)
		}
	})
	t.Run("RS-203 AS-220 another person who uses the browser meanwhile is not tied to the account", func(t *testing.T) {
		// Ada is about to link another account to hers; before the browser returns, Bob signs in.
		step, err := r.sessions.SealStep(purposeProvider, browserOf(t, r, p),
			flow.ProviderForm{Provider: "google", Purpose: "link", UserID: "usr_githubada"})
		if err != nil {
			t.Fatal(err)
		}
		left := p.post("/depart", url.Values{"step": {step}})
		p.post("/logout", url.Values{"step": {choice(p.get("/"), "Sign out")}})
		f.set(func(f *providers) { f.person = "bob" })
		defer f.set(func(f *providers) { f.person = "ada" })
		p.back(callback(t, "google",
			p.post("/depart", url.Values{"step": {choice(p.get("/"), "Continue with <bdi>Google")}})))
		before := f.returns
		if pg := p.back(callback(t, "google", left)); pg.status != 403 || f.returns != before {
			t.Errorf("got %d, returns %d", pg.status, f.returns-before)
		}
		if pg := p.post("/depart", url.Values{"step": {step}}); pg.status != 403 {
			t.Errorf("a form of the previous request: got %d", pg.status)
		}
	})
	t.Run("only the owner of an account unties it", func(t *testing.T) {
		p := r.person()
		p.back(callback(t, "github",
			p.post("/depart", url.Values{"step": {choice(p.get("/"), "Continue with <bdi>GitHub")}})))
		page := p.get("/account")
		if strings.Count(page.body, "Unlink<span") != 1 ||
			!strings.Contains(page.body, "Your account here was made with this account") {
			t.Error("the first account can be unlinked")
		}
		step := choice(page, "Unlink<span")
		if pg := p.post("/disconnect", url.Values{"step": {step}}); pg.status != 303 ||
			!slices.Equal(f.untied, []string{"usr_githubada google ada"}) {
			t.Errorf("got %d %v", pg.status, f.untied)
		}
		f.untieErr = storage.ErrLast
		if pg := p.post("/disconnect", url.Values{"step": {step}}); pg.status != http.StatusConflict ||
			!strings.Contains(pg.body, "only way") {
			t.Errorf("got %d", pg.status)
		}
		f.untieErr = storage.ErrSignedOut // PE-10: everything was ended in the meantime
		if pg := p.post("/disconnect", url.Values{"step": {step}}); pg.status != http.StatusForbidden ||
			!strings.Contains(pg.body, "you have been signed out") {
			t.Errorf("got %d", pg.status)
		}
		if pg := r.person().post("/disconnect", url.Values{"step": {step}}); pg.status != 400 {
			t.Errorf("another browser: got %d", pg.status)
		}
		r.restart(func(c *Config) { c.SignIn.SecondFactor = "required" })
		p.post("/disconnect", url.Values{"step": {step}}).leads(t, "/login/second?to=") // EN-05
		r.restart(func(c *Config) { c.SignIn.SecondFactor = "" })
		p.post("/logout", url.Values{"step": {choice(p.get("/"), "Sign out")}})
		if pg := p.post("/disconnect", url.Values{"step": {step}}); pg.status != 403 || len(f.untied) != 3 {
			t.Errorf("signed out: got %d", pg.status)
		}
	})
}

func sessionCookie(p *person) string {
	u, _ := url.Parse(p.http.URL)
	for _, c := range p.client.Jar.Cookies(u) {
		if c.Name == cookie.Name(p.http.URL, "session") {
			return c.Value
		}
	}
	return ""
}

func TestDepartureFails(t *testing.T) {
	r, f := delegated(t)
	f.departErr = oauth.NewError(oauth.TemporarilyUnavailable,
		"Google could not be reached. Please try again in a minute.")
	t.Run("AS-223 a provider that cannot be reached is an error for the client", func(t *testing.T) {
		got := responseOf(t, r.person().leave(authorizeQuery("provider", "google")))
		if got.Get("error") != "temporarily_unavailable" || got.Get("state") != "st-1" || got.Get("iss") != r.Issuer() {
			t.Errorf("got %v", got)
		}
	})
	t.Run("AS-223 and a page for the person, which goes to the client by itself", func(t *testing.T) {
		p := r.person()
		step := consentStep(t, p.get("/authorize?"+authorizeQuery("provider", "google").Encode()))
		pg := p.post("/consent", url.Values{"step": {step}, "decision": {"approve"}}, "Sec-Fetch-Dest", "document")
		if pg.status != http.StatusServiceUnavailable || pg.header.Get("Retry-After") == "" ||
			len(tripCookies(pg)) != 0 ||
			pg.header.Get("Refresh") != "" ||
			!strings.Contains(pg.body, `href="`+testRedirect+"?error=temporarily_unavailable") {
			t.Errorf("got %d %v", pg.status, pg.header)
		}
		for _, want := range []string{
			"Google could not be reached", "Try again", "provider=google", "Return to", "An App",
		} {
			if !strings.Contains(pg.body, want) {
				t.Errorf("no %q in the page", want)
			}
		}
	})
}

// stepBeside returns the step of the form with a label.
func stepBeside(t *testing.T, pg page, label string) string {
	t.Helper()
	for _, form := range strings.Split(pg.body, "<form")[1:] {
		if strings.Contains(form, label) {
			return page{body: form}.step(t)
		}
	}
	t.Fatalf("no form %q in %s", label, pg.body)
	return ""
}

// TestSignedOutChooses checks that after a sign-out, the provider lets the user choose an account,
// once (RU-15).
func TestSignedOutChooses(t *testing.T) {
	r, f := delegated(t)
	p := r.person()
	for i, want := range []bool{false, true, false} {
		if i == 1 {
			p.signInAt("google")
			p.post("/logout", url.Values{"step": {stepBeside(t, p.get("/"), "Sign out")}})
		}
		p.leave(authorizeQuery("provider", "google"))
		if trip := f.departed[len(f.departed)-1]; trip.Choose != want {
			t.Errorf("departure %d: got %+v, want Choose %t", i, trip, want)
		}
	}
	p.signInAt("google")
	p.post("/logout", url.Values{"step": {stepBeside(t, p.get("/"), "Sign out")}})
	p.post("/depart", url.Values{"step": {stepBeside(t, p.get("/"), "Continue with <bdi>Google")}})
	if trip := f.departed[len(f.departed)-1]; !trip.Choose {
		t.Errorf("from the start page: got %+v", trip)
	}
}
