package authserver

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/storagetest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/authkit"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// wayBack is another authentication method of a provider's user: arm sets it up, come signs in
// another browser with it.
type wayBack struct {
	name string
	arm  func(p *person)
	come func(p *person) page
}

const belongingPassword = "a fine new pass phrase 9"

// waysBack returns all of them. name is the user's name here.
func waysBack(t *testing.T, r *rig, name string) []wayBack {
	var codes []string
	var key *authkit.Authenticator
	return []wayBack{
		{"a recovery code", func(p *person) {
			pg := p.post("/account/recovery", url.Values{"step": {p.get("/account/recovery").step(t)}})
			for _, m := range regexp.MustCompile(`<li><code>([0-9A-Z-]+)</code>`).FindAllStringSubmatch(pg.body, -1) {
				codes = append(codes, m[1])
			}
		}, func(p *person) page {
			code := codes[0]
			codes = codes[1:]
			return p.post("/login/recovery", url.Values{
				"step": {formStep(t, p.get("/login"), "/login/recovery")}, "username": {name}, "recovery": {code},
			})
		}},
		{"a passkey", func(p *person) {
			key = r.authenticator()
			p.addPasskey(key).has(t, http.StatusOK, "")
		}, func(p *person) page { return p.byPasskey(key) }},
		{"a password", func(p *person) {
			p.post("/account/password", url.Values{
				"step": {p.get("/account/password").step(t)}, "password": {belongingPassword},
			}).leads(t, "/account#ways")
		}, func(p *person) page {
			return p.post("/login", url.Values{
				"step": {formStep(t, p.get("/login"), "/login")}, "username": {name}, "password": {belongingPassword},
			})
		}},
	}
}

// consented approves an application's request for scopes, and returns the token response.
func (p *person) consented(scope string) map[string]any {
	p.t.Helper()
	got := p.approve(authorizeQuery("scope", scope, "prompt", "consent"))
	status, out := p.token(codeForm(got.Get("code")))
	if status != http.StatusOK {
		p.t.Fatalf("token: got %d %v", status, out)
	}
	return out
}

// TestBelonging checks that an account that began at a provider belongs to it (AS-111, AS-217 to
// AS-219): the operator's rules about its users, and the end of their access, apply to all
// authentication methods.
func TestBelonging(t *testing.T) {
	r, f := delegated(t, named)
	limited := oauth.Scopes{"mcp"}
	withdraw := func(t *testing.T) {
		t.Helper()
		f.set(func(f *providers) { f.checkErr = storage.ErrRevoked })
		f.end(t, "google")
	}
	for i, name := range []string{"recovery", "passkey", "password"} {
		f.set(func(f *providers) { f.person, f.checkErr, f.permitted = name, nil, limited })
		way := waysBack(t, r, name+"@google")[i]
		p := r.person()
		p.signInAt("google")
		way.arm(p)
		other := r.person()
		if pg := way.come(other); !other.signedIn() {
			t.Fatalf("%s does not let the person in: %d %.2000s", way.name, pg.status, pg.body)
		}
		t.Run("AS-111 a scope rule holds for a person who comes in by "+way.name, func(t *testing.T) {
			for _, who := range []*person{p, other} { // p has set the password in the provider session
				if got := who.consented("mcp notes:write"); got["scope"] != "mcp" {
					t.Errorf("got %v", got)
				}
			}
			other.post("/account/keys", other.keyForm("scope", "mcp notes:write")).
				has(t, http.StatusForbidden, "Nothing was made")
		})
		tokens := other.consented("mcp offline_access")
		key := other.makeKey()
		t.Run("AS-218 the provider is asked before one begins by "+way.name, func(t *testing.T) {
			f.set(func(f *providers) { f.checkErr = storage.ErrRevoked })
			defer f.set(func(f *providers) { f.checkErr = nil })
			late := r.person()
			way.come(late).has(t, http.StatusForbidden, "has to confirm it")
			if late.signedIn() {
				t.Error("the person is in")
			}
		})
		t.Run("AS-219 what began by "+way.name+" ends with the session at the provider", func(t *testing.T) {
			f.end(t, "google")
			f.set(func(f *providers) { f.checkErr = nil })
			if p.signedIn() || other.signedIn() {
				t.Error("a session still works")
			}
			status, out := other.token(refreshForm(tokens["refresh_token"]))
			if status != http.StatusBadRequest || out["error"] != "invalid_grant" {
				t.Errorf("refresh: got %d %v", status, out)
			}
			other.refuses(key, http.StatusUnauthorized, "invalid_client")
		})
		t.Run("AS-219 none begins by "+way.name+" until the person has been there again", func(t *testing.T) {
			late := r.person()
			way.come(late).has(t, http.StatusForbidden, "has to confirm it")
			if late.signedIn() {
				t.Error("the person is in")
			}
			if !strings.Contains(r.log.String(), `"reason":"not at the provider"`) {
				t.Error("the log lacks the event")
			}
			late.signInAt("google")
			again := r.person()
			if way.come(again); !again.signedIn() {
				t.Error("the person is not let in any more")
			}
			withdraw(t)
		})
	}
}

// If the provider session ends while the user acts in it, the page asks them to sign in (AS-219).
func TestHomeEndsMeanwhile(t *testing.T) {
	var store *storagetest.Failing
	r, f := delegated(t, named, func(c *Config) {
		store = storagetest.NewFailing(c.Store.(storage.Store))
		c.Store = store
	})
	endBeforeTheNextBegins := func() {
		store.Surround(func(verb string, do func() error) error {
			if verb == "PutSession" {
				store.Surround(nil)
				f.end(t, "google")
			}
			return do()
		})
	}
	p := r.person()
	p.signInAt("google")
	set := url.Values{"step": {p.get("/account/password").step(t)}, "password": {belongingPassword}}
	endBeforeTheNextBegins()
	p.post("/account/password", set).has(t, http.StatusForbidden, "you have been signed out")
	if u, err := r.store.UserByName(t.Context(), "ada@google"); err != nil || u.PasswordHash == "" {
		t.Errorf("the password is not set: %+v, %v", u, err)
	}
	p.signInAt("google")
	proof := url.Values{"step": {formStep(t, p.get("/prove"), "/prove")}, "password": {belongingPassword}}
	endBeforeTheNextBegins()
	p.post("/prove", proof).has(t, http.StatusOK, "Notice from google: logged-out")
	if p.signedIn() {
		t.Error("a session still works")
	}
}

// PE-06: a refused sign-in uses up no recovery code, and sends no notice of a recovery.
func TestRefusedSignInSpendsNoCode(t *testing.T) {
	r, f := delegated(t, named)
	p := r.person()
	p.signInAt("google")
	step := func(p *person) url.Values {
		return url.Values{"step": {formStep(t, p.get("/login"), "/login/recovery")}, "username": {"ada@google"}}
	}
	list := regexp.MustCompile(`<li><code>([0-9A-Z-]+)</code>`).FindStringSubmatch(
		p.post("/account/recovery", url.Values{"step": {p.get("/account/recovery").step(t)}}).body)
	told := func() int {
		all, err := r.store.UnseenNotices(t.Context(), "usr_googleada")
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, one := range all {
			if one.Kind == string(notice.RecoveryUsed) {
				n++
			}
		}
		return n
	}
	come := func(want int, says string) {
		t.Helper()
		late := r.person()
		form := step(late)
		form.Set("recovery", list[1])
		late.post("/login/recovery", form).has(t, want, says)
	}
	f.set(func(f *providers) { f.checkErr = errNotNow })
	come(http.StatusServiceUnavailable, "")
	f.set(func(f *providers) { f.checkErr = storage.ErrRevoked })
	come(http.StatusForbidden, "has to confirm it")
	f.set(func(f *providers) { f.checkErr = nil })
	if n := told(); n != 0 {
		t.Errorf("got letters about %d refused recoveries", n)
	}
	come(http.StatusSeeOther, "")
	come(http.StatusUnauthorized, "")
	if n := told(); n != 1 {
		t.Errorf("got letters about %d recoveries, want 1", n)
	}
}

// AS-218: the home provider is asked before a sign-in at another provider, or with another device,
// is complete.
func TestHomeProviderIsAskedAlways(t *testing.T) {
	r, f := delegated(t, named)
	phone := r.person()
	phone.signInAt("google")
	u, err := r.store.User(t.Context(), "usr_googleada")
	if err != nil {
		t.Fatal(err)
	}
	asked := func() (n int) {
		f.set(func(f *providers) {
			for _, age := range f.checkedAge {
				if age == 10*time.Second {
					n++
				}
			}
			f.checkedAge = nil
		})
		return n
	}
	asked()
	waits := r.person()
	w := waits.askRemote("/login")
	phone.decideRemote(phone.get(devicePath(w.code)), "approve", w.number)
	if waits.get(w.at); !waits.signedIn() || asked() != 1 {
		t.Error("it was not asked for a sign-in with another device")
	}
	tied := storage.Arrival{
		Asked: true, Now: r.now(),
		Identity: storage.Identity{Connector: "github", Subject: "ada", UserID: u.ID},
		Upstream: storage.Upstream{
			ID: "ups_tied", Connector: "github", Subject: "ada", Linked: true, Sealed: []byte("x"), Version: 1,
			CreatedAt: r.now(), CheckedAt: r.now(), DueAt: r.now(),
		},
	}
	if _, err := r.store.Arrive(t.Context(), tied); err != nil {
		t.Fatal(err)
	}
	other := r.person()
	f.set(func(f *providers) { f.checkErr = storage.ErrRevoked })
	other.back(callback(t, "github", other.leave(authorizeQuery("provider", "github"))))
	f.set(func(f *providers) { f.checkErr = nil })
	if other.signedIn() {
		t.Error("it was not asked for a sign-in at another provider")
	}
	if other.signInAt("github"); !other.signedInAs("ada@google") {
		t.Error("the person is not let in")
	}
}
