package authserver

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

const bobsPassword = "battery staple correct"

// twoPeople returns a rig with alice and bob.
func twoPeople(t *testing.T) *rig {
	r := newRig(t)
	if _, err := r.Users().Create(t.Context(), "bob", bobsPassword, false); err != nil {
		t.Fatal(err)
	}
	return r
}

// linkTo returns the first link of a page whose address contains part.
func linkTo(t *testing.T, pg page, part string) string {
	t.Helper()
	for _, m := range regexp.MustCompile(`<a [^>]*href="([^"]*)"`).FindAllStringSubmatch(pg.body, -1) {
		if to := html.UnescapeString(m[1]); strings.Contains(to, part) {
			return to
		}
	}
	t.Fatalf("no link with %s (status %d): %.600s", part, pg.status, pg.body)
	return ""
}

// signInAs fills the login page, and returns the page after it.
func (p *person) signInAs(login page, name, password string) page {
	p.t.Helper()
	pg := p.post("/login", url.Values{"step": {login.step(p.t)}, "username": {name}, "password": {password}})
	if pg.status != http.StatusSeeOther {
		p.t.Fatalf("login as %s: got status %d", name, pg.status)
	}
	return p.get(pg.header.Get("Location"))
}

var accountOf = regexp.MustCompile(
	`action="/choose"><input type="hidden" name="step" value="([^"]+)"><button[^>]*><span><bdi>([^<]*)</bdi>`)

// accounts returns the content of the forms of the accounts that a page offers, by name.
func accounts(pg page) map[string]string {
	out := map[string]string{}
	for _, m := range accountOf.FindAllStringSubmatch(pg.body, -1) {
		out[m[2]] = m[1]
	}
	return out
}

func (p *person) chooses(pg page, name string) page {
	p.t.Helper()
	step, ok := accounts(pg)[name]
	if !ok {
		p.t.Fatalf("%s is not offered: %.600s", name, pg.body)
	}
	to := p.post("/choose", url.Values{"step": {step}})
	if to.status != http.StatusSeeOther {
		p.t.Fatalf("choosing %s: got status %d", name, to.status)
	}
	return p.get(to.header.Get("Location"))
}

func (pg page) asks(name string) bool {
	return strings.Contains(pg.body, `value="approve"`) &&
		strings.Contains(pg.body, "<strong><bdi>"+name+"</bdi></strong>")
}

// AS-239: several users are signed in in one browser, and none answers for another.
func TestSeveralAccounts(t *testing.T) {
	// both signs in alice and bob, bob being current, and returns bob's consent page
	both := func(t *testing.T, p *person, change ...string) page {
		t.Helper()
		shown := p.login(authorizeQuery(change...))
		chooser := p.get(linkTo(t, shown, "select_account"))
		if got := accounts(chooser); len(got) != 1 || got["alice"] == "" {
			t.Fatalf("got %v, want alice", got)
		}
		shown = p.signInAs(p.get(linkTo(t, chooser, "account=another")), "bob", bobsPassword)
		if !shown.asks("bob") {
			t.Fatalf("bob is not asked: %.600s", shown.body)
		}
		return shown
	}
	t.Run("AS-239 two people, one browser, two grants", func(t *testing.T) {
		r := twoPeople(t)
		p := r.person()
		shown := both(t, p)
		bobs := p.grantedTo(shown)
		shown = p.chooses(p.get("/authorize?"+authorizeQuery("prompt", "select_account").Encode()), "alice")
		if !shown.asks("alice") {
			t.Fatalf("alice is not asked: %.600s", shown.body)
		}
		if alices := p.grantedTo(shown); alices == bobs || alices == "" {
			t.Errorf("got the same person twice: %s", alices)
		}
		if got := responseOf(t, p.get("/authorize?"+authorizeQuery("prompt", "none").Encode())); !got.Has("code") {
			t.Errorf("the consent of alice is not remembered: %v", got)
		}
	})
	t.Run("AS-239 attack: two tabs, the account changes between page and click", func(t *testing.T) {
		p := twoPeople(t).person()
		shown := both(t, p)
		p.chooses(p.get("/authorize?"+authorizeQuery("prompt", "select_account").Encode()), "alice")
		after := p.decided(shown, nil)
		if after.header.Get("Location") != "" || !strings.Contains(after.body, `name="password"`) {
			t.Errorf("bob's page, answered by alice: got %d %s", after.status, after.header.Get("Location"))
		}
	})
	t.Run("AS-239 login_hint shows the accounts, and switches nothing by itself", func(t *testing.T) {
		p := twoPeople(t).person()
		p.grantedTo(both(t, p))
		for _, hint := range []string{"alice", "nobody@example.com"} { // AS-239, PE-08: the same for both
			pg := p.get("/authorize?" + authorizeQuery("login_hint", hint).Encode())
			if got := accounts(pg); pg.status != http.StatusOK || len(got) != 2 {
				t.Fatalf("%s: got %d %v", hint, pg.status, got)
			}
			login := p.get(linkTo(t, pg, "account=another"))
			if !strings.Contains(login.body, `name="username" value="`+hint+`"`) {
				t.Errorf("%s is not filled in: %.600s", hint, login.body)
			}
			silent := responseOf(t, p.get("/authorize?"+authorizeQuery("login_hint", hint, "prompt", "none").Encode()))
			if silent.Get("error") != "login_required" {
				t.Errorf("%s: got %v", hint, silent)
			}
		}
		if got := p.approve(authorizeQuery("login_hint", "Bob")); !got.Has("code") {
			t.Errorf("bob is expected and signed in: got %v", got)
		}
	})
	t.Run("AS-239 attack: another browser cannot choose the account", func(t *testing.T) {
		r := twoPeople(t)
		p, mallory := r.person(), r.person()
		both(t, p)
		stolen := accounts(p.get("/authorize?" + authorizeQuery("prompt", "select_account").Encode()))["alice"]
		mallory.login(authorizeQuery())
		if pg := mallory.post("/choose", url.Values{"step": {stolen}}); pg.status == http.StatusSeeOther {
			t.Errorf("got %d %s", pg.status, pg.header.Get("Location"))
		}
	})
	t.Run("signing out ends the current session, or all", func(t *testing.T) {
		for _, all := range []string{"", "yes"} {
			p := twoPeople(t).person()
			both(t, p)
			home := p.get("/")
			step := page{body: home.body[strings.Index(home.body, `action="/logout"`):]}.step(t)
			out := p.post("/logout", url.Values{"step": {step}, "all": {all}})
			if offered := strings.Contains(out.body, `name="all"`); offered != (all == "") {
				t.Errorf("all %q: signing out the others is offered: %v", all, offered)
			}
			login := p.get("/authorize?" + authorizeQuery().Encode())
			if !strings.Contains(login.body, `name="password"`) {
				t.Fatalf("all %q: somebody else is signed in: %.600s", all, login.body)
			}
			p.signInAs(login, "bob", bobsPassword)
			chooser := p.get("/authorize?" + authorizeQuery("prompt", "select_account").Encode())
			if _, ok := accounts(chooser)["alice"]; ok != (all == "") {
				t.Errorf("all %q: alice is offered: %v", all, ok)
			}
		}
	})
}

// grantedTo approves a page, and returns the user of the token.
func (p *person) grantedTo(shown page) string {
	p.t.Helper()
	status, out := p.token(codeForm(responseOf(p.t, p.decided(shown, nil)).Get("code")))
	if status != http.StatusOK {
		p.t.Fatalf("token: got %d %v", status, out)
	}
	return p.verified(p.t, out["access_token"].(string)).Subject
}

// AS-239, PE-05: a second factor of one user does not count for another user of the browser.
func TestSecondFactorOfTheChosenAccount(t *testing.T) {
	r := twoPeople(t)
	p := r.person()
	choose := "/authorize?" + authorizeQuery("prompt", "select_account").Encode()
	second := func(pg page, secret string) page {
		t.Helper()
		pg.leads(t, "/login/second?to=")
		asked := p.get(pg.header.Get("Location"))
		pg = p.post("/login/second", url.Values{"step": {asked.step(t)}, "code": {r.code(secret)}})
		r.advance(time.Minute) // each code works once
		return p.get(pg.header.Get("Location"))
	}
	p.signInAs(p.get("/login"), "alice", alicesPassword)
	alices := p.addApp()
	p.signInAs(p.get(linkTo(t, p.get(choose), "account=another")), "bob", bobsPassword)
	bobs := p.addApp()
	r.restart(func(c *Config) { c.SignIn.SecondFactor = "required" })

	asksBob := second(p.chooses(p.get(choose), "bob"), bobs)
	if !asksBob.asks("bob") {
		t.Fatalf("bob has proved enough, and is not asked: %.600s", asksBob.body)
	}
	asksAlice := p.chooses(p.get(choose), "alice") // she has shown one of the two factors
	asksAlice.leads(t, "/login/second?to=")
	silent := responseOf(t, p.get("/authorize?"+authorizeQuery("client_id", "static", "prompt", "none").Encode()))
	if silent.Get("error") != "login_required" {
		t.Errorf("prompt=none: got %v", silent)
	}
	if got := p.decided(asksBob, nil).header.Get("Location"); strings.Contains(got, "code=") {
		t.Errorf("alice answers bob's page with one proof: got %s", got)
	}
	if shown := second(asksAlice, alices); !shown.asks("alice") {
		t.Errorf("alice has proved enough, and is not asked: %.600s", shown.body)
	}
	if got := accounts(p.get(choose)); len(got) != 2 {
		t.Errorf("a second proof signs out the other person: got %v", got)
	}
	if shown := p.chooses(p.get(choose), "bob"); !shown.asks("bob") {
		t.Errorf("bob's proofs are forgotten: got %d %.600s", shown.status, shown.body)
	}
}
