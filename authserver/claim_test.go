package authserver

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/oauth"
)

var claimForm = regexp.MustCompile(`(?s)<form[^>]*action="[^"]*/claim".*?</form>`)

func claimStep(t *testing.T, pg page) string {
	t.Helper()
	return page{body: claimForm.FindString(pg.body), status: pg.status}.step(t)
}

// signInHere signs alice in with her password, without an application.
func (p *person) signInHere() {
	p.t.Helper()
	p.login(authorizeQuery())
}

// connectGoogle presses "Link your Google account" on the account page and comes back.
func (p *person) connectGoogle() page {
	p.t.Helper()
	pg := p.get("/account")
	form := pg.body[:strings.Index(pg.body, "Link your <bdi>Google")]
	left := p.post("/depart", url.Values{"step": {page{body: form[strings.LastIndex(form, "<form"):]}.step(p.t)}})
	return p.back(callback(p.t, "google", left))
}

// Security M1 of the providers' report: the returned account is shown and confirmed before it
// counts.
func TestClaim(t *testing.T) {
	r, f := delegated(t)
	f.set(func(f *providers) { f.person = "mallory" })
	identities := func(t *testing.T, want int) {
		t.Helper()
		u, err := r.store.UserByName(t.Context(), "alice")
		if err != nil {
			t.Fatal(err)
		}
		all, err := r.store.Identities(t.Context(), u.ID)
		if err != nil || len(all) != want {
			t.Errorf("got %+v, %v, want %d", all, err, want)
		}
	}
	p := r.person()
	p.signInHere()
	t.Run("PM1 the page names the account, its id, the provider and who is asked, and nothing is tied",
		func(t *testing.T) {
			pg := p.connectGoogle()
			for _, want := range []string{
				"mallory@example.com", ">mallory<", "Google", "accounts.google.com", "alice", `value="approve"`,
				`value="deny"`,
			} {
				if !strings.Contains(pg.body, want) {
					t.Errorf("no %q in the page: %s", want, pg.body)
				}
			}
			identities(t, 0)
		})
	t.Run("PM1 no: nothing is tied, then nor later", func(t *testing.T) {
		step := claimStep(t, p.connectGoogle())
		if pg := p.post("/claim", url.Values{"step": {step}, "decision": {"deny"}}); pg.status != 303 ||
			pg.header.Get("Location") != "/account" {
			t.Errorf("got %d %v", pg.status, pg.header)
		}
		if pg := p.post("/claim", url.Values{"step": {step}, "decision": {"approve"}}); pg.status != 400 {
			t.Errorf("got %d", pg.status)
		}
		if len(f.disclaimed) != 1 {
			t.Errorf("given up: %v", f.disclaimed)
		}
		identities(t, 0)
	})
	t.Run("PM1 the form is bound to browser, session and user, and says yes or no", func(t *testing.T) {
		step := claimStep(t, p.connectGoogle())
		yes := url.Values{"step": {step}, "decision": {"approve"}}
		mallory := r.person()
		mallory.signInAt("google")
		if pg := mallory.post("/claim", yes); pg.status != 400 || !strings.Contains(pg.body, "out of date") {
			t.Errorf("another browser: %d", pg.status)
		}
		if pg := p.post("/claim", yes, "Sec-Fetch-Site", "cross-site"); pg.status != 403 {
			t.Errorf("another site: %d", pg.status)
		}
		for _, verdict := range []string{"", "yes"} {
			if pg := p.post("/claim", url.Values{"step": {step}, "decision": {verdict}}); pg.status != 400 {
				t.Errorf("decision %q: %d", verdict, pg.status)
			}
		}
		p.get("/") // the same user signs in again: another session
		before := sessionCookie(p)
		p.login(authorizeQuery("prompt", "login"))
		if sessionCookie(p) == before {
			t.Fatal("the same session")
		}
		if pg := p.post("/claim", yes); pg.status != 400 || !strings.Contains(pg.body, "out of date") {
			t.Errorf("another session: %d", pg.status)
		}
		identities(t, 0)
	})
	t.Run("PM1 yes ties it, once", func(t *testing.T) {
		f.set(func(f *providers) { f.person = "alice-there" })
		step := claimStep(t, p.connectGoogle())
		if pg := p.post("/claim", url.Values{"step": {step}, "decision": {"approve"}}); pg.status != 303 ||
			pg.header.Get("Location") != "/account" {
			t.Errorf("got %d %v", pg.status, pg.header)
		}
		identities(t, 1)
		if pg := p.post("/claim", url.Values{"step": {step}, "decision": {"approve"}}); pg.status != 400 ||
			!strings.Contains(pg.body, "answered already") {
			t.Errorf("got %d", pg.status)
		}
	})
}

// Security H1 of the providers' report: giving a tool more access links no account.
func TestExtendAsks(t *testing.T) {
	r, f := delegated(t)
	p := r.person()
	p.signInHere()
	u, err := r.store.UserByName(t.Context(), "alice")
	if err != nil {
		t.Fatal(err)
	}
	to := strings.TrimPrefix(
		r.links.URL(
			r.links.For(delegation.TokenRequest{UserID: u.ID, Provider: "google", Resource: testResource},
				oauth.Scopes{"calendar"})), r.Issuer(),
	)
	allow := func() page {
		left := p.post(to, url.Values{"step": {connectForm(p.get(to)).step(t)}, "decision": {"approve"}})
		return p.back(callback(t, "google", left))
	}
	t.Run("PH1 who has no account there yet is asked, and may say no", func(t *testing.T) {
		pg := allow()
		if !strings.Contains(pg.body, "Is this your account?") || strings.Contains(pg.body, "is connected") {
			t.Fatalf("got %d %s", pg.status, pg.body)
		}
		pg = p.post("/claim", url.Values{"step": {claimStep(t, pg)}, "decision": {"deny"}})
		if pg.status != 200 || !strings.Contains(pg.body, "Nothing was changed") {
			t.Errorf("got %d %s", pg.status, pg.body)
		}
	})
	t.Run("PH1 yes leads to where the tool's request would", func(t *testing.T) {
		pg := allow()
		pg = p.post("/claim", url.Values{"step": {claimStep(t, pg)}, "decision": {"approve"}})
		if pg.status != 200 || !strings.Contains(pg.body, "is connected") || !strings.Contains(pg.body, "Notes") {
			t.Errorf("got %d %s", pg.status, pg.body)
		}
	})
	t.Run("PH1 another account is refused by both names, with the way to do it again", func(t *testing.T) {
		f.set(func(f *providers) { f.person, f.other = "mallory@example.com", "ada@example.com" })
		pg := allow()
		if pg.status != 403 {
			t.Fatalf("got %d", pg.status)
		}
		for _, want := range []string{
			"mallory@example.com", "ada@example.com", "sign in there as", `href="` + to + `"`,
		} {
			if !strings.Contains(pg.body, want) {
				t.Errorf("no %q in the page: %s", want, pg.body)
			}
		}
	})
}
