package authserver

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/users"
)

// stolen returns a browser with a session of alice without authentication: her phone approved it.
func (r *rig) stolen(alice *person) *person {
	r.t.Helper()
	thief := r.person()
	w := thief.askRemote("/login")
	alice.approveRemote(w)
	if thief.get(w.at); !thief.signedIn() {
		r.t.Fatal("the browser is not signed in")
	}
	return thief
}

// notices posts an action of the notices page.
func (p *person) notices(act string) page {
	p.t.Helper()
	return p.post("/account/notices",
		url.Values{"step": {formStep(p.t, p.get("/account/notices"), "/account/notices")}, "act": {act}})
}

// connectionAct posts an action on the one connection of the account page, and returns the
// response.
func (p *person) connectionAct(act string) page {
	p.t.Helper()
	pg := p.get("/account")
	return p.post("/account/connections", url.Values{
		"step": {formStep(p.t, pg, "/account/connections")}, "grant": rows(grantRow, pg)[:1], "act": {act},
	})
}

// PE-04: someone with a session, but without authentication in it, cannot hide notices from its
// user or restore access. They cannot lock the user out of the account or stop its recovery.
func TestStolenSession(t *testing.T) {
	t.Run("PE-04 what tells of a sign-in is not marked as seen by its browser", func(t *testing.T) {
		r := newRig(t)
		alice := r.alice()
		thief := r.stolen(alice)
		thief.notices("seen").leads(t, "/prove?to=")
		const told = "A browser was signed in with another device"
		alice.get("/account").has(t, http.StatusOK, told)
		alice.notices("hide").has(t, http.StatusBadRequest, "out of date")
		alice.get("/account").has(t, http.StatusOK, told)
		alice.notices("seen")
		if pg := alice.get("/account"); strings.Contains(pg.body, told) {
			t.Errorf("with a proof: got %.900s", pg.body)
		}
	})
	t.Run("PE-06 nor is a recovery stopped; with a proof it is, and that is told", func(t *testing.T) {
		r := newRig(t)
		alice := r.alice()
		thief := r.stolen(alice)
		made, err := r.users.Recover(t.Context(), r.as.Issuer, "alice", users.RecoveryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		link := pathOf(t, made.URL)
		thief.notices("stop").leads(t, "/prove?to=")
		r.person().get(link).has(t, http.StatusOK, "alice")
		alice.notices("stop")
		r.person().get(link).has(t, http.StatusNotFound, "link")
		thief.get("/account").has(t, http.StatusOK, "The recovery of your account was cancelled.")
	})
	t.Run("PE-09 nor is access resumed; with a proof it is, and that is told", func(t *testing.T) {
		r := newRig(t)
		alice := r.person()
		alice.signIn()
		thief := r.stolen(alice)
		alice.connectionAct("pause")
		thief.connectionAct("resume").leads(t, "/prove?to=")
		alice.get("/account").has(t, http.StatusOK, `value="resume"`)
		alice.connectionAct("resume")
		alice.get("/account").has(t, http.StatusOK, "A paused application may use your account again")
		thief.connectionAct("pause").leads(t, "/account?done=") // revoking access needs no authentication
	})
	t.Run("PE-09 nor is a person thrown out who has just proved who they are", func(t *testing.T) {
		r := newRig(t)
		alice := r.alice()
		thief := r.stolen(alice)
		id := rows(sessionRow, alice.get("/account"))
		for _, act := range []url.Values{
			{"act": {"end-others"}}, {"act": {"end"}, "session": id[:1]}, {"act": {"end"}, "session": id[1:]},
		} {
			act.Set("step", formStep(t, thief.get("/account"), "/account/sign-ins"))
			if thief.post("/account/sign-ins", act); !alice.signedIn() {
				t.Fatalf("%v: the person is signed out", act)
			}
			if !thief.signedIn() { // its own ends
				thief = r.stolen(alice)
			}
		}
		thief.post("/account/sign-ins", url.Values{
			"step": {formStep(t, thief.get("/account"), "/account/sign-ins")}, "act": {"end-others"},
		}).leads(t, "/prove?to=")
		r.advance(time.Hour) // and ends the session of the thief without authentication
		if pg := alice.account("sign-ins", "act", "end-others"); thief.signedIn() || !alice.signedIn() {
			t.Errorf("the thief is still signed in: %d %.300s", pg.status, pg.body)
		}
	})
}

// PE-04: a changed password is notified once, and a renamed method with both names.
func TestChangesAreToldOnce(t *testing.T) {
	r := newRig(t, named)
	p := r.alice()
	p.addPasskey(r.authenticator())
	if pg := p.change("way", "rename", "name", "Phone of Anna"); pg.status != http.StatusSeeOther {
		t.Fatalf("got %d", pg.status)
	}
	p.change("way", "rename", "name", "Phone of Anna") // unchanged
	p.post("/account/password", url.Values{
		"step": {p.get("/account/password").step(t)}, "password": {"a better horse battery"},
	})
	alice, err := r.Users().Find(t.Context(), "alice")
	if err != nil {
		t.Fatal(err)
	}
	unseen, err := r.store.UnseenNotices(t.Context(), alice.ID)
	if err != nil {
		t.Fatal(err)
	}
	count, renamed := map[string]int{}, ""
	for _, n := range unseen {
		if count[n.Kind]++; n.Kind == "way-renamed" {
			renamed = n.Detail
		}
	}
	if count["password-changed"] != 1 || count["way-renamed"] != 1 || !strings.HasSuffix(renamed, " → Phone of Anna") {
		t.Errorf("got %v, %q", count, renamed)
	}
	p.get("/account").has(t, http.StatusOK, "A way to sign in was given another name")
}

// PE-05: if a second factor is required, users without one add it before anything else; until then
// a session with a password gives no access to others.
func TestEnrolmentComesFirst(t *testing.T) {
	r := newRig(t, named)
	alice := r.person()
	alice.signIn()
	alice.connectionAct("pause")
	r.restart(func(c *Config) { c.SignIn.SecondFactor = "required" })
	p := r.person()
	pg := p.enter()
	pg.leads(t, "/login/second?to=")
	p.get(pg.header.Get("Location")).has(t, http.StatusOK, "you need a second step")
	p.get("/account/keys").leads(t, "/login/second?to=")
	p.connectionAct("resume").leads(t, "/login/second?to=")
	p.get("/account").has(t, http.StatusOK, `value="resume"`)
	t.Run("a form that was made before makes no key", func(t *testing.T) {
		r.restart(func(c *Config) { c.SignIn.SecondFactor = "off" })
		form := p.keyForm()
		r.restart(func(c *Config) { c.SignIn.SecondFactor = "required" })
		p.post("/account/keys", form).leads(t, "/login/second?to=")
		if pg := p.get("/account"); strings.Contains(pg.body, "Nightly report") {
			t.Error("there is a key")
		}
	})
	t.Run("with an app the person goes on", func(t *testing.T) {
		secret := p.addApp()
		pg := p.get("/account/keys")
		asked := p.get(pg.header.Get("Location"))
		pg = p.post("/login/second", url.Values{"step": {asked.step(t)}, "code": {r.code(secret)}})
		if pg.header.Get("Location") != "/account/keys" {
			t.Fatalf("got %d to %q", pg.status, pg.header.Get("Location"))
		}
		p.get("/account/keys").has(t, http.StatusOK, `name="days"`)
	})
}

// PE-05: also if the user signed in at a provider and opens the account page.
func TestEnrolmentComesFirstAfterAProvider(t *testing.T) {
	r, f := delegated(t, func(c *Config) { c.SignIn.SecondFactor = "required" })
	p := r.person()
	left := p.post("/depart", url.Values{"step": {formStep(t, p.get("/login"), "/depart")}})
	p.back(callback(t, "google", left)).leads(t, "/login/second?to=")
	t.Run("PE-04 until then they link no further account", func(t *testing.T) {
		departed := len(f.departed)
		step := formStep(t, p.get("/account"), "/depart")
		p.post("/depart", url.Values{"step": {step}}).leads(t, "/login/second?to=")
		if len(f.departed) != departed {
			t.Error("the browser is sent to the provider")
		}
	})
}

// PE-03, PE-04, PE-10: with the steps of docs/people.md, a user takes an account back. Someone else
// knows the password, and has recovery codes, a passkey, a session and an application in it.
func TestAnAccountIsTakenBack(t *testing.T) {
	r := newRig(t, named)
	thief, theirs, mine := r.person(), r.authenticator(), r.authenticator()
	out := thief.signIn()
	thief.addPasskey(theirs)
	codes := recoveryCode.FindAllStringSubmatch(thief.post("/account/recovery",
		url.Values{"step": {thief.get("/account/recovery").step(t)}}).body, -1)
	r.advance(time.Hour) // the authentication of the thief is too old for a change
	alice := r.person()
	alice.post("/login/recovery", url.Values{
		"step": {alice.get("/login").step(t)}, "username": {"alice"}, "recovery": {codes[0][1]},
	}).leads(t, "/account")
	before := wayForm.FindAllStringSubmatch(alice.get("/account").body, -1)
	alice.account("sign-ins", "act", "end-others")
	alice.addPasskey(mine)
	for _, way := range before { // all except the newly added one
		alice.change(way[1], "remove").leads(t, "/account#ways")
	}
	asked := alice.account("stop", "act", "stop-all")
	alice.post("/account/stop", url.Values{
		"step": {formStep(t, asked, "/account/stop")}, "act": {"stop-all"},
	}).has(t, http.StatusOK, "signed out")

	r.advance(time.Second) // sign-ins that began until then were ended
	if thief.signedIn() || r.introspected(thief, out["access_token"])["active"] != false {
		t.Error("the other person, or their application, is still in")
	}
	thief.enter().has(t, http.StatusUnauthorized, "not right")
	thief.post("/login/recovery", url.Values{
		"step": {thief.get("/login").step(t)}, "username": {"alice"}, "recovery": {codes[1][1]},
	}).has(t, http.StatusUnauthorized, "recovery code is not right")
	thief.post("/login/passkey", thief.answered(thief.get("/login"), theirs)).has(t, http.StatusUnauthorized, "passkey")
	alice.post("/login/passkey", alice.answered(alice.get("/login"), mine)).leads(t, "/account")
	if left := wayForm.FindAllStringSubmatch(alice.get("/account").body, -1); len(left) != 1 {
		t.Errorf("%d ways in are left", len(left))
	}
}

var recoveryCode = regexp.MustCompile(`<li><code>([0-9A-Z-]+)</code>`)
