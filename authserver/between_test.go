package authserver

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/storagetest"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// A click answers the page that the user saw, in its language, for its scopes and its account
// (SP-01, PE-13, AS-237). Actions of the browser in between do not change that.
func TestBetweenPageAndClick(t *testing.T) {
	t.Run("PE-13 another language is chosen: what was allowed is the same", func(t *testing.T) {
		r := newRig(t)
		p := r.person()
		shown := p.login(authorizeQuery("ui_locales", "de"))
		if spoke(shown) != "de/de" {
			t.Fatalf("got %s", spoke(shown))
		}
		if pg := p.post("/language", url.Values{"language": {"ja"}, "back": {"/"}}); pg.status != http.StatusSeeOther {
			t.Fatalf("got %d", pg.status)
		}
		if scope := p.grantedAfter(shown, nil); scope != "mcp" {
			t.Errorf("got %q", scope)
		}
	})
	t.Run("AS-237 two tabs: each click grants what its page showed", func(t *testing.T) {
		r := newRig(t, markedScopes)
		p := r.person()
		narrow := p.login(authorizeQuery("scope", "mcp notes:read"))
		wide := p.get("/authorize?" + authorizeQuery("scope", "mcp notes:read notes:write").Encode())
		if scope := p.grantedAfter(wide, url.Values{"preset": {"all"}}); scope != "mcp notes:read notes:write" {
			t.Errorf("the wide one: got %q", scope)
		}
		if scope := p.grantedAfter(narrow, url.Values{"preset": {"all"}}); scope != "mcp notes:read" {
			t.Errorf("the narrow one: got %q", scope)
		}
	})
	t.Run("SP-01 two tabs: one denies, the other approves", func(t *testing.T) {
		r := newRig(t)
		p := r.person()
		one := p.login(authorizeQuery("state", "one"))
		two := p.get("/authorize?" + authorizeQuery("state", "two").Encode())
		no := responseOf(t, p.decided(one, url.Values{"decision": {"deny"}}))
		yes := responseOf(t, p.decided(two, nil))
		if no.Get("error") != "access_denied" || no.Get("state") != "one" || no.Has("code") ||
			!yes.Has("code") || yes.Get("state") != "two" {
			t.Errorf("got %v and %v", no, yes)
		}
	})
	t.Run("AS-237 a scope becomes dangerous, or includes one, and is not granted by the old page", func(t *testing.T) {
		for name, change := range map[string]func(*storage.ScopeText){
			"dangerous": func(s *storage.ScopeText) { s.Access, s.Dangerous = storage.AccessWrite, true },
			"including": func(s *storage.ScopeText) { s.Access, s.Implies = "", []string{"notes:delete"} },
		} {
			r := newRig(t, markedScopes)
			p := r.person()
			before := p.login(authorizeQuery("scope", "mcp notes:read"))
			changed := r.cfg.Resources[0]
			changed.Scopes = slices.Clone(changed.Scopes)
			change(&changed.Scopes[1])
			r.restart(func(c *Config) { c.Resources = []storage.Resource{changed} })
			for _, preset := range []string{"all", "read", "choose"} {
				after := p.decided(before, url.Values{"preset": {preset}, "scope": {"notes:read"}})
				wantPage(t, after)
				if !strings.Contains(after.body, `value="notes:read"`) ||
					strings.Contains(after.body, `value="notes:read" checked`) {
					t.Errorf("%s, %s: it is ticked beforehand", name, preset)
				}
			}
			after := p.decided(before, nil)
			if scope := p.grantedAfter(after, nil); oauth.ParseScopes(scope).Has("notes:read") {
				t.Errorf("%s: got %q without a tick", name, scope)
			}
		}
	})
	t.Run("AS-237 a scope is no longer in the catalogue", func(t *testing.T) {
		r := newRig(t, markedScopes)
		p := r.person()
		before := p.login(authorizeQuery("scope", "mcp notes:read notes:write"))
		changed := r.cfg.Resources[0]
		changed.Scopes = slices.Delete(slices.Clone(changed.Scopes), 2, 3)
		r.restart(func(c *Config) { c.Resources = []storage.Resource{changed} })
		after := p.decided(before, url.Values{"preset": {"all"}})
		if after.status == http.StatusOK {
			wantPage(t, after)
			after = p.decided(after, url.Values{"preset": {"all"}})
		}
		status, out := p.token(codeForm(responseOf(t, after).Get("code")))
		scope, _ := out["scope"].(string)
		if status != http.StatusOK || oauth.ParseScopes(scope).Has("notes:write") {
			t.Errorf("got %d %v", status, out)
		}
	})
}

// PE-10: ending everything also ends unfinished steps: a sign-in that waits for its second factor,
// an open page, a code, and the request of a device.
func TestStopEndsWhatIsUnderWay(t *testing.T) {
	r := newRig(t, named)
	p := r.alice()
	secret := p.addApp()
	other := r.person()
	waiting := other.enter()
	waiting.has(t, http.StatusOK, "needs a second proof")
	asked := p.get("/authorize?" + authorizeQuery().Encode())
	code := responseOf(t, p.decided(p.get("/authorize?"+authorizeQuery("prompt", "consent").Encode()), nil)).Get("code")
	stop := func(p *person) {
		t.Helper()
		pg := p.account("stop", "act", "stop-all")
		form := url.Values{"step": {formStep(t, pg, "/account/stop")}, "act": {"stop-all"}}
		if pg = p.post("/account/stop", form); pg.status != http.StatusOK {
			t.Fatalf("got %d", pg.status)
		}
	}
	stop(p)
	t.Run("PE-10 a sign-in in its second step", func(t *testing.T) {
		pg := other.post("/login/second", url.Values{"step": {waiting.step(t)}, "code": {r.code(secret)}})
		pg.has(t, http.StatusBadRequest, "start again")
		if other.signedIn() {
			t.Error("it has signed in")
		}
	})
	t.Run("PE-10 a sign-in whose password is being checked", func(t *testing.T) {
		r := newRig(t)
		u, err := r.Users().Find(t.Context(), "alice")
		if err != nil {
			t.Fatal(err)
		}
		if err := r.store.StopEverything(t.Context(), u.ID, r.now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		p := r.person()
		p.enter().has(t, http.StatusUnauthorized, "not right")
		if r.advance(2 * time.Second); p.enter().status != http.StatusSeeOther {
			t.Error("one that begins afterwards is refused")
		}
	})
	t.Run("PE-10 a page that asks", func(t *testing.T) {
		if pg := p.decided(asked, nil); !strings.Contains(pg.body, `name="password"`) {
			t.Errorf("got %d to %q", pg.status, pg.header.Get("Location"))
		}
	})
	t.Run("PE-10 a code", func(t *testing.T) {
		if status, out := p.token(codeForm(code)); status != http.StatusBadRequest || out["error"] != "invalid_grant" {
			t.Errorf("got %d %v", status, out)
		}
	})
	t.Run("PE-10 and a sign-in that begins afterwards is as any other", func(t *testing.T) {
		r.advance(time.Minute)
		pg := other.enter()
		pg = other.post("/login/second", url.Values{"step": {pg.step(t)}, "code": {r.code(secret)}})
		if pg.status != http.StatusSeeOther || !other.signedIn() {
			t.Errorf("got %d", pg.status)
		}
	})
}

// PE-10: a change of authentication methods that was sent before everything was ended has no
// effect, however far it has come: a password takes a second to hash.
func TestStopEndsAChange(t *testing.T) {
	var store *storagetest.Failing
	r := newRig(t, named, func(c *Config) {
		store = storagetest.NewFailing(c.Store.(storage.Store))
		c.Store = store
	})
	key := r.authenticator()
	r.alice().addPasskey(key)
	before, err := r.store.UserByName(t.Context(), "alice")
	if err != nil {
		t.Fatal(err)
	}
	had, err := r.store.Ways(t.Context(), before.ID)
	if err != nil {
		t.Fatal(err)
	}
	for verb, send := range map[string]func(p *person) page{
		"ChangePassword": func(p *person) page {
			step := p.get("/account/password").step(t)
			return p.post("/account/password", url.Values{"step": {step}, "password": {newPassword}})
		},
		"ReplaceRecoveryCodes": func(p *person) page {
			return p.post("/account/recovery", url.Values{"step": {p.get("/account/recovery").step(t)}})
		},
		"AddWay":         func(p *person) page { return p.addPasskey(r.authenticator()) },
		"RemovePassword": func(p *person) page { return p.change("password", "remove") },
		"RemoveWay":      func(p *person) page { return p.change("way", "remove") },
		"RenameWay":      func(p *person) page { return p.change("way", "rename", "name", "Mine") },
	} {
		t.Run("PE-10 "+verb, func(t *testing.T) {
			r.advance(time.Minute)
			p := r.person()
			p.byPasskey(key)
			stopped := false
			store.Surround(func(called string, do func() error) error {
				if called == verb {
					store.Surround(nil)
					stopped = true
					if err := r.store.StopEverything(t.Context(), before.ID, r.now()); err != nil {
						t.Error(err)
					}
				}
				return do()
			})
			pg := send(p)
			store.Surround(nil)
			if !stopped {
				t.Fatal("nothing was stopped meanwhile")
			}
			pg.has(t, http.StatusForbidden, "you have been signed out")
			after, err := r.store.UserByName(t.Context(), "alice")
			if err != nil || after.PasswordHash != before.PasswordHash {
				t.Errorf("the password is another one: %v", err)
			}
			has, err := r.store.Ways(t.Context(), before.ID)
			if err != nil || len(has) != 1 || has[0].Name != had[0].Name {
				t.Errorf("got %d ways in, %v", len(has), err)
			}
			if p.signedIn() {
				t.Error("the session still works")
			}
		})
	}
}
