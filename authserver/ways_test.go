package authserver

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/testkit/authkit"
)

// named gives the server of a rig a host name, which passkeys require.
func named(c *Config) { c.Issuer = strings.Replace(c.Issuer, "127.0.0.1", "localhost", 1) }

// authenticator returns an authenticator in a browser that shows the pages of a rig.
func (r *rig) authenticator() *authkit.Authenticator { return authkit.New(r.as.Issuer) }

const alicesPassword = "correct horse battery"

// enter signs alice in with her password, and returns the response.
func (p *person) enter() page {
	p.t.Helper()
	return p.post("/login",
		url.Values{"step": {p.get("/login").step(p.t)}, "username": {"alice"}, "password": {alicesPassword}})
}

func (r *rig) alice() *person {
	r.t.Helper()
	p := r.person()
	if pg := p.enter(); pg.status != http.StatusSeeOther {
		r.t.Fatalf("got %d %.300s", pg.status, pg.body)
	}
	return p
}

// signedIn reports whether the browser has a live session.
func (p *person) signedIn() bool {
	p.t.Helper()
	return strings.Contains(p.get("/account").body, "data-credential=")
}

var passkeyForm = regexp.MustCompile(`(?s)<form[^>]*data-passkey="[a-z]+"[^>]*>.*?</form>`)
var optionsField = regexp.MustCompile(`data-options="([^"]*)"`)

// asked returns the form of a page for a passkey, and the options for it.
func (pg page) asked(t *testing.T) (step string, options []byte) {
	t.Helper()
	form := page{body: passkeyForm.FindString(pg.body)}
	m := optionsField.FindStringSubmatch(form.body)
	if m == nil {
		t.Fatalf("no form for a passkey (status %d): %.900s", pg.status, pg.body)
	}
	return form.step(t), []byte(html.UnescapeString(m[1]))
}

// addPasskey adds a passkey to the user's account.
func (p *person) addPasskey(a *authkit.Authenticator) page {
	p.t.Helper()
	step, options := p.get("/account/passkey").asked(p.t)
	made, err := a.Create(options)
	if err != nil {
		p.t.Fatal(err)
	}
	return p.post("/account/passkey", url.Values{"step": {step}, "credential": {string(made)}, "name": {"Phone"}})
}

// answered returns a passkey's answer to a page.
func (p *person) answered(pg page, a *authkit.Authenticator) url.Values {
	p.t.Helper()
	step, options := pg.asked(p.t)
	answer, err := a.Get(options)
	if err != nil {
		p.t.Fatal(err)
	}
	return url.Values{"step": {step}, "credential": {string(answer)}}
}

var secretField = regexp.MustCompile(`<p class="copy secret"><code>([A-Z2-7 ]+)</code>`)

// addApp adds an authenticator app, and returns its secret.
func (p *person) addApp() (secret string) {
	p.t.Helper()
	pg := p.get("/account/app")
	m := secretField.FindStringSubmatch(pg.body)
	if m == nil {
		p.t.Fatalf("no secret (status %d): %.900s", pg.status, pg.body)
	}
	secret = strings.ReplaceAll(m[1], " ", "")
	pg = p.post("/account/app", url.Values{"step": {pg.step(p.t)}, "code": {p.code(secret)}, "name": {"Work phone"}})
	if !strings.Contains(pg.body, "Work phone") {
		p.t.Fatalf("got %d %.300s", pg.status, pg.body)
	}
	p.advance(time.Minute) // each code works once
	return secret
}

func (r *rig) code(secret string) string {
	r.t.Helper()
	code, err := totp.GenerateCode(secret, r.now())
	if err != nil {
		r.t.Fatal(err)
	}
	return code
}

// has fails the test unless a page has a status and contains a text.
func (pg page) has(t *testing.T, status int, words string) {
	t.Helper()
	if pg.status != status || !strings.Contains(pg.body, words) {
		t.Errorf("got %d, want %d and %q: %.900s", pg.status, status, words, pg.body)
	}
}

// leads fails the test unless a page redirects to an address with a prefix.
func (pg page) leads(t *testing.T, to string) {
	t.Helper()
	if got := pg.header.Get("Location"); pg.status != http.StatusSeeOther || !strings.HasPrefix(got, to) {
		t.Errorf("got %d to %q, want %q: %.300s", pg.status, got, to, pg.body)
	}
}

func TestPasskeySignIn(t *testing.T) {
	r := newRig(t, named)
	a, alice := r.authenticator(), r.alice()
	alice.addPasskey(a).has(t, http.StatusOK, "Make recovery codes") // PE-03: a second method is suggested
	t.Run("a passkey is all that a person needs, without a name", func(t *testing.T) {
		p := r.person()
		pg := p.get("/authorize?" + authorizeQuery().Encode())
		pg = p.post("/login/passkey", p.answered(pg, a))
		if pg.status != http.StatusSeeOther || !strings.HasPrefix(pg.header.Get("Location"), "/authorize?") {
			t.Fatalf("got %d %.300s", pg.status, pg.body)
		}
		p.get(pg.header.Get("Location")).has(t, http.StatusOK, `value="approve"`)
		if !strings.Contains(r.log.String(), `"methods":"webauthn"`) {
			t.Error("the log does not say how the person signed in")
		}
	})
	t.Run("PE-07 an assertion is good once", func(t *testing.T) {
		p := r.person()
		answer := p.answered(p.get("/login"), a)
		if pg := p.post("/login/passkey", answer); pg.status != http.StatusSeeOther {
			t.Fatalf("got %d", pg.status)
		}
		p.post("/logout", url.Values{"step": {p.get("/").step(t)}})
		p.post("/login/passkey", answer).has(t, http.StatusBadRequest, "finished already")
		if p.signedIn() {
			t.Error("a replayed assertion signs in")
		}
	})
	t.Run("PE-07 a challenge is bound to its browser", func(t *testing.T) {
		victim, thief := r.person(), r.person()
		answer := victim.answered(victim.get("/login"), a)
		thief.get("/login")
		thief.post("/login/passkey", answer).has(t, http.StatusBadRequest, "This page is out of date")
		stolen := thief.answered(thief.get("/login"), a)
		stolen.Set("credential", answer.Get("credential"))
		thief.post("/login/passkey", stolen).has(t, http.StatusUnauthorized, "was not accepted")
		if thief.signedIn() {
			t.Error("another browser's assertion signs in")
		}
	})
	t.Run("PE-07 a challenge is good for five minutes", func(t *testing.T) {
		p := r.person()
		answer := p.answered(p.get("/login"), a)
		r.advance(5*time.Minute + time.Second)
		p.post("/login/passkey", answer).has(t, http.StatusBadRequest, "took too long")
	})
	t.Run("two tabs have a challenge each", func(t *testing.T) {
		p := r.person()
		one, two := p.get("/login"), p.get("/login")
		for _, tab := range []page{one, two} {
			if pg := p.post("/login/passkey", p.answered(tab, a)); pg.status != http.StatusSeeOther {
				t.Errorf("got %d %.300s", pg.status, pg.body)
			}
		}
	})
	t.Run("PE-07 user verification is demanded", func(t *testing.T) {
		p := r.person()
		unverified := *a
		unverified.Verified = false
		p.post("/login/passkey", p.answered(p.get("/login"), &unverified)).
			has(t, http.StatusUnauthorized, "was not accepted")
	})
	t.Run("an authenticator is told of a passkey that is gone", func(t *testing.T) {
		p, other := r.person(), r.authenticator()
		alice.post("/prove", alice.answered(alice.get("/prove"), a))
		_, options := alice.get("/account/passkey").asked(t)
		if _, err := other.Create(options); err != nil {
			t.Fatal(err)
		}
		p.post("/login/passkey", p.answered(p.get("/login"), other)).
			has(t, http.StatusUnauthorized, ` data-unknown="`)
	})
	t.Run("PE-12 without script the page says what to do", func(t *testing.T) {
		p := r.person()
		pg := p.get("/login")
		step, _ := pg.asked(t)
		pg.has(t, http.StatusOK, "<noscript>")
		p.post("/login/passkey", url.Values{"step": {step}, "credential": {""}}).
			has(t, http.StatusBadRequest, "need JavaScript")
	})
	t.Run("PE-08 the page is the same for every name", func(t *testing.T) {
		shape := func(name string) string {
			p := r.person()
			step := p.get("/login").step(t)
			pg := p.post("/login", url.Values{"step": {step}, "username": {name}, "password": {"wrong"}})
			for _, secret := range []string{`(value|data-options)="[^"]*"`, name} {
				pg.body = regexp.MustCompile(secret).ReplaceAllString(pg.body, "")
			}
			return pg.body
		}
		if shape("alice") != shape("nobody") {
			t.Error("the page tells who has a passkey")
		}
	})
	t.Run("garbage is refused", func(t *testing.T) {
		p := r.person()
		for _, answer := range []string{"{", "[]", `{"id":"x"}`, strings.Repeat("a", 40000)} {
			step, _ := p.get("/login").asked(t)
			p.post("/login/passkey", url.Values{"step": {step}, "credential": {answer}}).
				has(t, http.StatusUnauthorized, "was not accepted")
		}
	})
}

// PE-01: where passkeys cannot work, they are not offered, and the page gives the reason.
func TestPasskeysAreNotOffered(t *testing.T) {
	r := newRig(t)
	p := r.alice()
	pg := r.person().get("/login")
	if strings.Contains(pg.body, "data-passkey") || strings.Contains(pg.body, "<script") {
		t.Error("a passkey is offered at an IP address")
	}
	p.get("/account").has(t, http.StatusOK, "is an IP address, and browsers demand a host name")
	p.get("/account/passkey").leads(t, "/account#ways")
}

func TestSecondFactor(t *testing.T) {
	r := newRig(t, named)
	secret := r.alice().addApp()
	second := func(p *person, pg page, code string) page {
		return p.post("/login/second", url.Values{"step": {pg.step(t)}, "code": {code}})
	}
	t.Run("PE-05 a person with an app is not signed in by a password alone", func(t *testing.T) {
		p := r.person()
		pg := p.get("/authorize?" + authorizeQuery().Encode())
		pg = p.post("/login", url.Values{"step": {pg.step(t)}, "username": {"alice"}, "password": {alicesPassword}})
		pg.has(t, http.StatusOK, "needs a second proof")
		if p.signedIn() || strings.Contains(pg.header.Get("Set-Cookie"), "session") {
			t.Error("there is a session")
		}
		second(p, pg, "000000").has(t, http.StatusUnauthorized, "not right")
		pg = second(p, pg, r.code(secret))
		if pg.status != http.StatusSeeOther || !strings.HasPrefix(pg.header.Get("Location"), "/authorize?") {
			t.Fatalf("got %d %.300s", pg.status, pg.body)
		}
		if !p.signedIn() || !strings.Contains(r.log.String(), `"methods":"pwd otp"`) {
			t.Error("both proofs do not sign in")
		}
		r.advance(time.Minute)
	})
	t.Run("PE-05 a code is good once", func(t *testing.T) {
		one, two := r.person(), r.person()
		first, again := one.enter(), two.enter()
		if pg := second(one, first, r.code(secret)); pg.status != http.StatusSeeOther {
			t.Fatalf("got %d", pg.status)
		}
		second(two, again, r.code(secret)).has(t, http.StatusUnauthorized, "used already")
		r.advance(time.Minute)
	})
	t.Run("what waits for a second proof is completed once, in whichever tab", func(t *testing.T) {
		p := r.person()
		pg := p.enter()
		if done := second(p, pg, r.code(secret)); done.status != http.StatusSeeOther {
			t.Fatalf("got %d", done.status)
		}
		r.advance(time.Minute)
		second(p, pg, r.code(secret)).has(t, http.StatusBadRequest, "finished already")
		r.advance(time.Minute)
	})
	t.Run("it is bound to the browser", func(t *testing.T) {
		p, thief := r.person(), r.person()
		pg := p.enter()
		thief.get("/login")
		second(thief, pg, r.code(secret)).has(t, http.StatusBadRequest, "This page is out of date")
	})
	t.Run("it is good for ten minutes", func(t *testing.T) {
		p := r.person()
		pg := p.enter()
		r.advance(10*time.Minute + time.Second)
		second(p, pg, r.code(secret)).has(t, http.StatusBadRequest, "took too long")
	})
	t.Run("a password that is changed meanwhile ends it", func(t *testing.T) {
		p := r.person()
		pg := p.enter()
		if err := r.Users().SetPassword(t.Context(), "alice", "another horse battery", true); err != nil {
			t.Fatal(err)
		}
		second(p, pg, r.code(secret)).has(t, http.StatusUnauthorized, "not right")
		if p.signedIn() {
			t.Error("the old password signs in")
		}
		if err := r.Users().SetPassword(t.Context(), "alice", alicesPassword, true); err != nil {
			t.Fatal(err)
		}
		r.advance(time.Minute)
	})
	t.Run("an account that is disabled meanwhile ends it", func(t *testing.T) {
		p := r.person()
		pg := p.enter()
		if err := r.Users().Disable(t.Context(), "alice"); err != nil {
			t.Fatal(err)
		}
		second(p, pg, r.code(secret)).has(t, http.StatusBadRequest, "start again")
		if err := r.Users().Enable(t.Context(), "alice"); err != nil {
			t.Fatal(err)
		}
		r.advance(time.Minute)
		second(p, pg, r.code(secret)).has(t, http.StatusBadRequest, "start again")
		r.advance(time.Minute)
	})
	t.Run("AS-39 prompt=login and max_age ask for both proofs", func(t *testing.T) {
		p := r.person()
		if pg := second(p, p.enter(), r.code(secret)); pg.status != http.StatusSeeOther {
			t.Fatalf("got %d", pg.status)
		}
		r.advance(time.Minute)
		for name, value := range map[string]string{"prompt": "login", "max_age": "0"} {
			r.advance(time.Second)
			pg := p.get("/authorize?" + authorizeQuery(name, value).Encode())
			pg = p.post("/login", url.Values{"step": {pg.step(t)}, "username": {"alice"}, "password": {alicesPassword}})
			pg.has(t, http.StatusOK, "needs a second proof")
		}
	})
}

// TestFreshProof checks that a stolen session cannot add an authentication method (PE-04).
func TestFreshProof(t *testing.T) {
	r := newRig(t, named)
	a, p := r.authenticator(), r.alice()
	form, options := p.get("/account/passkey").asked(t)
	made, err := a.Create(options)
	if err != nil {
		t.Fatal(err)
	}
	r.advance(5*time.Minute + time.Second)
	forms := map[string]url.Values{
		"/account/passkey": {"step": {form}, "credential": {string(made)}}, "/account/ways": {"act": {"remove"}},
	}
	forms["/account/ways"].Set("step", formStep(t, p.get("/account"), "/account/ways"))
	for path, values := range forms {
		p.post(path, values).leads(t, "/prove?to=") // PE-04
	}
	var prove page
	for _, path := range []string{"/account/passkey", "/account/app", "/account/recovery", "/account/password"} {
		prove = p.get(path)
		prove.leads(t, "/prove?to=") // PE-04
	}
	if u, err := r.Users().Find(t.Context(), "alice"); err != nil {
		t.Fatal(err)
	} else if all, err := r.store.Ways(t.Context(), u.ID); err != nil || len(all) != 0 {
		t.Errorf("PE-04: got %v, %v, want no way", all, err)
	}

	stolen := r.person()
	stolen.client.Jar.SetCookies(mustURL(t, r.http.URL), p.client.Jar.Cookies(mustURL(t, r.http.URL)))
	if !stolen.signedIn() {
		t.Fatal("the cookie is not stolen")
	}
	asked := p.get(prove.header.Get("Location"))
	asked.has(t, http.StatusOK, "confirm once more that it is you")
	step := asked.step(t)
	p.post("/prove", url.Values{"step": {step}, "password": {"wrong"}}).has(t, http.StatusUnauthorized, "not right")
	done := p.post("/prove", url.Values{"step": {step}, "password": {alicesPassword}})
	if done.status != http.StatusSeeOther || done.header.Get("Location") != "/account/password" {
		t.Fatalf("got %d to %q", done.status, done.header.Get("Location"))
	}
	p.get("/account/password").has(t, http.StatusOK, "New password")
	if stolen.signedIn() {
		t.Error("PE-04: the thief of the old cookie has a session with a new proof")
	}
	p.addPasskey(a)
	r.advance(6 * time.Minute)
	t.Run("a passkey proves", func(t *testing.T) {
		asked := p.get("/prove")
		if pg := p.post("/prove", p.answered(asked, a)); pg.status != http.StatusSeeOther {
			t.Errorf("got %d %.300s", pg.status, pg.body)
		}
		p.get("/account/app").has(t, http.StatusOK, "Scan this picture")
	})
	t.Run("a person who is not signed in signs in, and comes back", func(t *testing.T) {
		p := r.person()
		pg := p.get(p.get("/account/app").header.Get("Location"))
		if pg = p.post("/login/passkey", p.answered(pg, a)); pg.header.Get("Location") != "/account/app" {
			t.Errorf("got %d to %q", pg.status, pg.header.Get("Location"))
		}
	})
	t.Run("a destination of another browser, or of no page of ours, is refused", func(t *testing.T) {
		r.advance(6 * time.Minute)
		r.person().get(p.get("/account/app").header.Get("Location")).has(t, http.StatusBadRequest, "out of date")
		r.person().get("/prove?to=https://evil.example/").has(t, http.StatusBadRequest, "out of date")
	})
	t.Run("another person's form is refused", func(t *testing.T) {
		if _, err := r.Users().Create(t.Context(), "bob", "correct horse staple", false); err != nil {
			t.Fatal(err)
		}
		p.post("/prove", p.answered(p.get("/prove"), a))
		step := p.get("/account/password").step(t)
		p.post("/login", url.Values{
			"step": {r.loginStep(p)}, "username": {"bob"}, "password": {"correct horse staple"}})
		p.post("/account/password", url.Values{"step": {step}, "password": {"of the one before"}}).
			has(t, http.StatusForbidden, "Another person")
	})
}

// loginStep returns the sealed state of a login page for a browser that is signed in.
func (r *rig) loginStep(p *person) string {
	r.t.Helper()
	return p.get("/authorize?" + authorizeQuery("prompt", "login").Encode()).step(r.t)
}

var wayForm = regexp.MustCompile(`(?s)<li data-credential="([^"]+)">.*?name="step" value="([^"]+)"`)

// change posts a form of the list of methods.
func (p *person) change(id, act string, more ...string) page {
	p.t.Helper()
	for _, m := range wayForm.FindAllStringSubmatch(p.get("/account").body, -1) {
		if m[1] == id || id == "way" && strings.HasPrefix(m[1], "way_") {
			form := url.Values{"step": {m[2]}, "act": {act}}
			for i := 0; i+1 < len(more); i += 2 {
				form.Set(more[i], more[i+1])
			}
			return p.post("/account/ways", form)
		}
	}
	p.t.Fatalf("no way %s", id)
	return page{}
}

func TestChangeOfWays(t *testing.T) {
	r := newRig(t, named)
	p := r.alice()
	t.Run("PE-03 a password is not removed while it is the only way in", func(t *testing.T) {
		p.change("password", "remove").has(t, http.StatusConflict, "your only way to sign in")
	})
	p.addPasskey(r.authenticator())
	t.Run("a way has the name that the person gives it", func(t *testing.T) {
		if pg := p.change("way", "rename", "name", "Key on the desk"); pg.status != http.StatusSeeOther {
			t.Errorf("got %d", pg.status)
		}
		p.get("/account").has(t, http.StatusOK, "Key on the desk")
	})
	t.Run("PE-04 each change is audited and kept for the person", func(t *testing.T) {
		if !strings.Contains(r.log.String(), audit.AccountChanged) || !strings.Contains(r.log.String(), "way-added") {
			t.Errorf("got %s", r.log)
		}
	})
	t.Run("PE-03 of two ways one is removed, and then none", func(t *testing.T) {
		if pg := p.change("password", "remove"); pg.status != http.StatusSeeOther {
			t.Fatalf("got %d %.300s", pg.status, pg.body)
		}
		p.change("way", "remove").has(t, http.StatusConflict, "your only way to sign in")
		p.get("/account").has(t, http.StatusOK, "Key on the desk")
	})
	t.Run("the earlier page of the ways in leads to the account page", func(t *testing.T) {
		p.get("/account/ways").leads(t, "/account#ways")
	})
	t.Run("a form without an act changes nothing", func(t *testing.T) {
		p.change("way", "").has(t, http.StatusBadRequest, "out of date")
	})
}

func TestRecoveryCodes(t *testing.T) {
	r := newRig(t, named)
	p := r.alice()
	codes := func() []string {
		pg := p.post("/account/recovery", url.Values{"step": {p.get("/account/recovery").step(t)}})
		var out []string
		for _, m := range regexp.MustCompile(`<li><code>([0-9A-Z-]+)</code>`).FindAllStringSubmatch(pg.body, -1) {
			out = append(out, m[1])
		}
		if len(out) != 10 {
			t.Fatalf("PE-06: got %d codes: %.900s", len(out), pg.body)
		}
		return out
	}
	old, fresh := codes(), codes()
	use := func(name, code string) page {
		p := r.person()
		return p.post("/login/recovery",
			url.Values{"step": {p.get("/login").step(t)}, "username": {name}, "recovery": {code}})
	}
	t.Run("PE-06 new codes replace the earlier ones", func(t *testing.T) {
		use("alice", old[0]).has(t, http.StatusUnauthorized, "recovery code is not right")
	})
	t.Run("PE-06 a code is good once, with the name", func(t *testing.T) {
		use("nobody", fresh[0]).has(t, http.StatusUnauthorized, "recovery code is not right")
		use("alice", strings.ToLower(strings.ReplaceAll(fresh[0], "-", " "))).leads(t, "/account")
		use("alice", fresh[0]).has(t, http.StatusUnauthorized, "recovery code is not right")
		p.get("/account").has(t, http.StatusOK, "9 codes left")
		if !strings.Contains(r.log.String(), "recovery-used") {
			t.Error("PE-04: the use is not told")
		}
	})
	t.Run("PE-04 codes are removed with a fresh proof", func(t *testing.T) {
		r.advance(6 * time.Minute)
		p.change("recovery", "remove").leads(t, "/prove")
		r.advance(-6 * time.Minute)
		p.change("recovery", "remove").leads(t, "/account#ways")
		use("alice", fresh[1]).has(t, http.StatusUnauthorized, "recovery code is not right")
		p.get("/account").has(t, http.StatusOK, "Your recovery codes were removed.")
		if !strings.Contains(r.log.String(), "recovery-removed") {
			t.Error("PE-04: the removal is not told")
		}
	})
	t.Run("PE-06 a code is never enough for an administrator alone", func(t *testing.T) {
		admin, err := r.Users().Create(t.Context(), "root", "correct horse staple", true)
		if err != nil {
			t.Fatal(err)
		}
		codes, err := r.ways.NewRecoveryCodes(t.Context(), admin.ID)
		if err != nil {
			t.Fatal(err)
		}
		pg := use("root", codes[0])
		pg.has(t, http.StatusOK, "needs a second proof")
		if strings.Contains(strings.Join(pg.header.Values("Set-Cookie"), " "), "mcp-authd-session") {
			t.Error("there is a session")
		}
	})
}

func TestNewPassword(t *testing.T) {
	r := newRig(t, named)
	p, elsewhere := r.alice(), r.alice()
	set := func(password string) page {
		step := p.get("/account/password").step(t)
		return p.post("/account/password", url.Values{"step": {step}, "password": {password}})
	}
	set("short").has(t, http.StatusBadRequest, "at least 8 characters")
	set("password1").has(t, http.StatusBadRequest, "most common")
	if pg := set("a better horse battery"); pg.status != http.StatusSeeOther {
		t.Fatalf("got %d %.300s", pg.status, pg.body)
	}
	if !p.signedIn() || elsewhere.signedIn() {
		t.Error("the other browsers are to be signed out, and they alone")
	}
	if !strings.Contains(r.log.String(), "password-changed") {
		t.Error("PE-04: the change is not told")
	}
}

// TestRequired checks that if two factors are required, a session with one is not enough for a
// code.
func TestRequired(t *testing.T) {
	r := newRig(t, named)
	old := r.alice() // signed in before they were required
	r.restart(func(c *Config) { c.SignIn.SecondFactor = "required" })
	p, a := old, r.authenticator()
	pg := p.get("/authorize?" + authorizeQuery().Encode())
	pg.leads(t, "/login/second?to=")
	pg = p.get(pg.header.Get("Location"))
	pg.has(t, http.StatusOK, "you need a second step")
	add := regexp.MustCompile(`href="(/account/passkey\?to=[^"]+)"`).FindStringSubmatch(pg.body)
	if add == nil {
		t.Fatal("no passkey can be added")
	}
	step, options := p.get(html.UnescapeString(add[1])).asked(t)
	made, err := a.Create(options)
	if err != nil {
		t.Fatal(err)
	}
	pg = p.post("/account/passkey", url.Values{"step": {step}, "credential": {string(made)}})
	pg = p.get(pg.header.Get("Location"))
	pg.has(t, http.StatusOK, "needs one more proof")
	pg = p.post("/login/second", p.answered(pg, a))
	if to := pg.header.Get("Location"); !strings.HasPrefix(to, "/authorize?") {
		t.Fatalf("got %d to %q: %.300s", pg.status, to, pg.body)
	}
	p.get(pg.header.Get("Location")).has(t, http.StatusOK, `value="approve"`)
	t.Run("a consent of before gives no code", func(t *testing.T) {
		r.restart(func(c *Config) { c.SignIn.SecondFactor = "off" })
		p := r.alice()
		p.approve(authorizeQuery("client_id", "static"))
		r.restart(func(c *Config) { c.SignIn.SecondFactor = "required" })
		pg := p.get("/authorize?" + authorizeQuery("client_id", "static").Encode())
		if to := pg.header.Get("Location"); !strings.HasPrefix(to, "/login/second?to=") {
			t.Errorf("got %d to %q", pg.status, to)
		}
		pg = p.get("/authorize?" + authorizeQuery("client_id", "static", "prompt", "none").Encode())
		if got := responseOf(t, pg).Get("error"); got != "login_required" {
			t.Errorf("got %q", got)
		}
	})
}

// EN-03: changes of one account are limited, because each writes to the log and sends a mail.
// Another account is not affected, nor are actions that only revoke access.
func TestChangesAreBounded(t *testing.T) {
	r := newRig(t, named)
	p := r.alice()
	p.addPasskey(r.authenticator())
	rename := func(i int) page { return p.change("way", "rename", "name", fmt.Sprintf("Key %d", i)) }
	made := 0
	for ; rename(made).status == http.StatusSeeOther; made++ {
		if made > 2*30 {
			t.Fatal("the changes have no bound")
		}
	}
	pg := rename(made)
	pg.has(t, http.StatusTooManyRequests, "Wait a minute")
	if pg.header.Get("Retry-After") == "" {
		t.Error("the answer does not say how long to wait")
	}
	r.advance(10 * time.Second)
	if pg := rename(made); pg.status != http.StatusSeeOther {
		t.Errorf("after a wait: got %d", pg.status)
	}
	step := formStep(t, p.get("/account"), "/account/stop")
	p.post("/account/stop", url.Values{"step": {step}, "act": {"stop-all"}}).has(t, http.StatusOK, "/account/stop")
}
