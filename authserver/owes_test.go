package authserver

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// acting maps each address that changes something for a session to its form.
type acting map[string]url.Values

// formsOf fetches the forms of a user whose session needs no more authentication. The user has a
// paused application.
func (p *person) formsOf() acting {
	p.t.Helper()
	p.signIn()
	p.connectionAct("pause")
	p.connectionAct("resume") // creates a notice
	p.connectionAct("pause")
	pg := p.get("/account")
	passkey, options := p.get("/account/passkey").asked(p.t)
	made, err := p.authenticator().Create(options)
	if err != nil {
		p.t.Fatal(err)
	}
	return acting{
		"/account/connections": {
			"step": {formStep(p.t, pg, "/account/connections")}, "grant": rows(grantRow, pg)[:1], "act": {"resume"},
		},
		"/account/ways":     {"step": {formStep(p.t, pg, "/account/ways")}, "act": {"remove"}},
		"/account/notices":  {"step": {formStep(p.t, p.get("/account/notices"), "/account/notices")}, "act": {"seen"}},
		"/account/recovery": {"step": {p.get("/account/recovery").step(p.t)}},
		"/account/password": {"step": {p.get("/account/password").step(p.t)}, "password": {"a better horse battery"}},
		"/account/keys":     p.keyForm(),
		"/account/passkey":  {"step": {passkey}, "credential": {string(made)}},
		"/account/app":      {"step": {p.get("/account/app").step(p.t)}, "code": {"000000"}},
	}
}

// TestOwed checks that each address where a session acts requires the missing authentication, with
// one rule (EN-05).
func TestOwed(t *testing.T) {
	enrols := []string{"/account/passkey", "/account/app"}
	pages := append([]string{"/account/recovery", "/account/password", "/account/keys"}, enrols...)
	required := func(c *Config) { c.SignIn.SecondFactor = "required" }
	walk := func(t *testing.T, p *person, forms acting, to func(path string) string) {
		t.Helper()
		check := func(what, path string, pg page) {
			t.Helper()
			led := pg.header.Get("Location")
			for _, other := range []string{"/prove?to=", "/login/second?to="} {
				if want := to(path) == other; strings.HasPrefix(led, other) != want {
					t.Errorf("EN-05 %s %s: got %d to %q, want to be led to %q", what, path, pg.status, led, to(path))
				}
			}
		}
		for _, path := range pages {
			check("GET", path, p.get(path))
		}
		for path, form := range forms {
			check("POST", path, p.post(path, form))
		}
	}
	to := func(page string) func(string) string { return func(string) string { return page } }
	t.Run("a proof of the last minutes", func(t *testing.T) {
		r := newRig(t, named)
		p := r.alice()
		forms := p.formsOf()
		r.advance(6 * time.Minute)
		walk(t, p, forms, to("/prove?to="))
	})
	t.Run("a second factor, which the person has", func(t *testing.T) {
		r := newRig(t, named)
		p := r.alice()
		p.addApp()
		p.advance(-time.Minute)
		forms := p.formsOf()
		r.restart(required)
		walk(t, p, forms, to("/login/second?to="))
	})
	t.Run("a second factor, which the person has to enrol: nothing else goes before", func(t *testing.T) {
		r := newRig(t, named)
		p := r.alice()
		forms := p.formsOf()
		forms["/account/passkey"].Set("credential", "{}") // an added passkey is required from then on
		r.restart(required)
		walk(t, p, forms, func(path string) string {
			if slices.Contains(enrols, path) {
				return ""
			}
			return "/login/second?to="
		})
	})
	t.Run("a proof in this browser", func(t *testing.T) {
		r := newRig(t, named)
		alice := r.alice()
		thief := r.stolen(alice)
		for _, path := range pages {
			thief.get(path).leads(t, "/prove?to=")
		}
	})
	t.Run("nothing", func(t *testing.T) {
		r := newRig(t, named)
		p := r.alice()
		forms := p.formsOf()
		delete(forms, "/account/password") // it ends the session
		walk(t, p, forms, to(""))
	})
}

// EN-05: no address is forgotten. Addresses outside TestOwed are listed here with a reason.
func TestOwedIsAskedEverywhere(t *testing.T) {
	r := newRig(t, named)
	walked := r.alice().formsOf()
	elsewhere := map[string]string{
		"/paused":  "TestPausedApplication",
		"/consent": "TestRequired", "/device": "TestDevicesAndDemands", "/clearance/{id}": "TestClearance",
		"/device/sign-in": "TestRemoteProof", "/account/sign-ins": "TestStolenSession; it ends sessions",
		"/account/stop": "it takes access away",
		"/language":     "TestLanguageOfTheAccount: a session that owes something stores none",
		"/login/second": "it is what is owed", "/prove": "it is what is owed",
		"/login": "no session", "/login/passkey": "no session", "/login/recovery": "no session",
		"/login/device": "no session", "/login/forgotten": "no session", "/choose": "no session",
		"/link/{token}": "no session", "/setup": "no session", "/setup/check": "no session",
		"/logout":            "it ends the session",
		"/connect/{request}": "TestConnectOwes", "/claim": "TestConnectNeedsAProof",
		"/depart": "TestEnrolmentComesFirstAfterAProvider", "/disconnect": "TestHomeDeparture",
		"/callback/{provider}": "it ends what /consent, /depart or /connect began",
	}
	at, _ := delegated(t, named)
	at.pages.register(func(path string, _ http.Handler, methods ...string) {
		if _, ok := walked[path]; !ok && elsewhere[path] == "" && slices.Contains(methods, http.MethodPost) {
			t.Errorf("EN-05 %s takes forms: add it to formsOf, or to elsewhere with its reason", path)
		}
	}, false)
}

// EN-05: six digits do not make a session permanent that another device approved: it requires the
// password or a passkey.
func TestACodeProvesNothingForABrowserLetInElsewhere(t *testing.T) {
	r := newRig(t, named)
	alice := r.alice()
	secret := alice.addApp()
	fresh := r.person()
	pg := fresh.enter()
	pg = fresh.post("/login/second", url.Values{"step": {pg.step(t)}, "code": {r.code(secret)}})
	if pg.status != http.StatusSeeOther {
		t.Fatalf("got %d %.300s", pg.status, pg.body)
	}
	r.advance(time.Minute)
	thief := r.person()
	w := thief.askRemote("/login")
	if pg := fresh.decideRemote(fresh.get(devicePath(w.code)), "approve", w.number); pg.status != http.StatusOK {
		t.Fatalf("got %d %.300s", pg.status, pg.body)
	}
	if thief.get(w.at); !thief.signedIn() {
		t.Fatal("the browser is not signed in")
	}
	asked := thief.get(thief.get("/account/passkey").header.Get("Location"))
	asked.has(t, http.StatusOK, `name="password"`)
	if strings.Contains(asked.body, `name="code"`) {
		t.Error("EN-05: the page asks for a code of the app")
	}
	thief.post("/prove", url.Values{"step": {asked.step(t)}, "code": {r.code(secret)}}).
		has(t, http.StatusUnauthorized, "not right")
	thief.get("/account/passkey").leads(t, "/prove?to=")
	pg = thief.post("/prove", url.Values{"step": {asked.step(t)}, "password": {alicesPassword}})
	pg.has(t, http.StatusOK, `name="code"`) // the password is not enough either
	pg = thief.post("/login/second", url.Values{"step": {pg.step(t)}, "code": {r.code(secret)}})
	pg.leads(t, "/account/passkey")
	thief.get("/account/passkey").has(t, http.StatusOK, "passkey")
}

// PE-03: an administrator with only a password is not locked out if a second factor is required.
// The operator can restore access if the second factor is lost.
func TestAdministratorsEnrolFirst(t *testing.T) {
	r := newRig(t, func(c *Config) { c.SignIn.AdminsSecondFactor = "required" })
	root, err := r.Users().Create(t.Context(), "root", "correct horse staple", true)
	if err != nil {
		t.Fatal(err)
	}
	enter := func(p *person) page {
		t.Helper()
		pg := p.post("/login", url.Values{
			"step": {p.get("/login").step(t)}, "username": {"root"}, "password": {"correct horse staple"},
		})
		if to := p.there(pg); to != "" {
			pg = p.get(to)
		}
		return pg
	}
	for range 2 { // the second time after the app was lost
		p := r.person()
		enter(p).has(t, http.StatusOK, "you need a second step")
		p.get("/account/recovery").leads(t, "/login/second?to=")
		secret := p.addApp()
		p = r.person()
		pg := enter(p)
		pg.has(t, http.StatusOK, `name="code"`)
		p.post("/login/second", url.Values{"step": {pg.step(t)}, "code": {r.code(secret)}}).leads(t, "/account")
		p.get("/account/recovery").has(t, http.StatusOK, "ecovery codes")
		all, err := r.store.Ways(t.Context(), root.ID)
		if err != nil || len(all) != 1 {
			t.Fatalf("got %v, %v", all, err)
		}
		if err := r.ways.Remove(t.Context(), root.ID, all[0].ID); err != nil {
			t.Fatal(err)
		}
	}
}
