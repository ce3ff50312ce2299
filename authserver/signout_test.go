package authserver

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// signOutForm returns the sign-out form of a page.
func (pg page) signOutForm(t *testing.T) url.Values {
	t.Helper()
	return url.Values{"step": {page{body: pg.body[strings.Index(pg.body, `action="/logout"`):]}.step(t)}}
}

// wantCurrent checks which user is signed in, "" for none.
func (p *person) wantCurrent(name string) {
	p.t.Helper()
	pg := p.get("/")
	if got := strings.Contains(pg.body, `action="/logout"`); got != (name != "") {
		p.t.Errorf("a person is signed in: %v, want %q", got, name)
	}
	if name != "" && !strings.Contains(pg.body, "<bdi>"+name+"</bdi>") {
		p.t.Errorf("%q is not signed in: %.600s", name, pg.body)
	}
}

// AS-239: a page signs out the user that it shows, even if another one has become current.
func TestSignOutOfAPersonOfAPage(t *testing.T) {
	alicesTab := func(t *testing.T, path string) (*person, url.Values) {
		t.Helper()
		p := twoPeople(t).person()
		p.signInAs(p.get("/login"), "alice", alicesPassword)
		form := p.get(path).signOutForm(t)
		p.signInAs(p.get(linkTo(t, p.get("/authorize?"+authorizeQuery("prompt", "select_account").Encode()),
			"account=another")), "bob", bobsPassword)
		return p, form
	}
	for _, path := range []string{"/", "/account"} {
		t.Run("another person is current: they stay, of "+path, func(t *testing.T) {
			p, form := alicesTab(t, path)
			if pg := p.post("/logout", form); !strings.Contains(pg.body, `name="all"`) {
				t.Errorf("bob is not said to be signed in: %d %.400s", pg.status, pg.body)
			}
			p.wantCurrent("bob")
			chooser := p.get("/authorize?" + authorizeQuery("prompt", "select_account").Encode())
			if _, ok := accounts(chooser)["alice"]; ok {
				t.Error("alice is signed in")
			}
		})
	}
	t.Run("the second click of a double click signs out no other person", func(t *testing.T) {
		p, form := alicesTab(t, "/")
		p.post("/logout", form)
		p.post("/logout", form)
		p.wantCurrent("bob")
	})
	t.Run("also after the session was replaced by a proof", func(t *testing.T) {
		p := twoPeople(t).person()
		p.signInAs(p.get("/login"), "alice", alicesPassword)
		form := p.get("/").signOutForm(t)
		p.signInAs(p.get("/authorize?"+authorizeQuery("prompt", "login").Encode()), "alice", alicesPassword)
		p.post("/logout", form)
		p.wantCurrent("")
	})
	t.Run("the form for all others signs out no single person", func(t *testing.T) {
		p, form := alicesTab(t, "/")
		step := p.post("/logout", form).signOutForm(t)
		if pg := p.post("/logout", step); pg.status != http.StatusBadRequest ||
			!strings.Contains(pg.body, "out of date") {
			t.Errorf("got %d %.400s", pg.status, pg.body)
		}
		p.wantCurrent("bob")
		step.Set("all", "yes")
		p.post("/logout", step)
		p.wantCurrent("")
	})
}

// PE-10: a passkey that answers an old page after all sessions were ended does not sign its user
// in.
func TestPasskeyPageFromBeforeAStop(t *testing.T) {
	r := newRig(t, named)
	p, key := r.person(), r.authenticator()
	p.signIn()
	p.addPasskey(key).has(t, http.StatusOK, "")
	alice, err := r.store.UserByName(t.Context(), "alice")
	if err != nil {
		t.Fatal(err)
	}
	early := r.person()
	answer := early.answered(early.get("/login"), key)
	r.advance(time.Second)
	if err := r.store.StopEverything(t.Context(), alice.ID, r.now()); err != nil {
		t.Fatal(err)
	}
	r.advance(time.Second)
	early.post("/login/passkey", answer).has(t, http.StatusBadRequest, "took too long")
	if early.signedIn() {
		t.Error("the person is in")
	}
	if early.byPasskey(key); !early.signedIn() {
		t.Error("a page from after it does not let the person in")
	}
}

// AS-239: if a user signs in again in a browser, the earlier session ends, because no page could
// end it.
func TestTheEarlierSessionOfAPerson(t *testing.T) {
	r := newRig(t)
	p, thief := r.person(), r.person()
	p.signInAs(p.get("/login"), "alice", alicesPassword)
	thief.client.Jar.SetCookies(mustURL(t, r.http.URL), p.client.Jar.Cookies(mustURL(t, r.http.URL)))
	thief.wantCurrent("alice")
	p.signInAs(p.get("/authorize?"+authorizeQuery("prompt", "login").Encode()), "alice", alicesPassword)
	p.wantCurrent("alice")
	thief.wantCurrent("")
}

// AS-239: a session ends if a sixth user displaces it from the browser.
func TestTheSixthPersonOfABrowser(t *testing.T) {
	r := newRig(t)
	p := r.person()
	var first []*http.Cookie
	for i := range 6 {
		name := fmt.Sprint("person", i)
		if _, err := r.Users().Create(t.Context(), name, bobsPassword, false); err != nil {
			t.Fatal(err)
		}
		p.signInAs(p.get("/authorize?"+authorizeQuery("prompt", "login").Encode()), name, bobsPassword)
		if i == 0 {
			first = p.client.Jar.Cookies(mustURL(t, r.http.URL))
		}
		if i == 4 {
			before := r.person()
			before.client.Jar.SetCookies(mustURL(t, r.http.URL), first)
			before.wantCurrent("person0")
		}
	}
	thief := r.person()
	thief.client.Jar.SetCookies(mustURL(t, r.http.URL), first)
	thief.wantCurrent("")
	p.wantCurrent("person5")
	chooser := accounts(p.get("/authorize?" + authorizeQuery("prompt", "select_account").Encode()))
	if _, ok := chooser["person0"]; ok || len(chooser) != 5 {
		t.Errorf("got %v, want the last five", chooser)
	}
	if n := strings.Count(r.log.String(), `"msg":"session.ended"`); n != 1 {
		t.Errorf("%d sign-outs are in the log, want 1", n)
	}
}
