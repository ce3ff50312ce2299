package authserver

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/oauth"
)

var connectForm = func(pg page) page {
	if i := strings.Index(pg.body, `action="/connect/`); i >= 0 {
		return page{status: pg.status, body: pg.body[i:]}
	}
	return page{status: pg.status}
}

func TestConnect(t *testing.T) {
	r, f := delegated(t)
	link := func(user string) string {
		full := r.links.URL(
			r.links.For(delegation.TokenRequest{UserID: user, Provider: "google", Resource: testResource},
				oauth.Scopes{"calendar.readonly"}),
		)
		return strings.TrimPrefix(full, r.Issuer())
	}
	ada := r.person()
	ada.signInAt("google")
	t.Run("RS-200 the page names the server, the provider, what is asked and who is signed in", func(t *testing.T) {
		pg := ada.get(link("usr_googleada"))
		for _, want := range []string{
			"Notes", testResource, "Google", "accounts.google.com", "calendar.readonly", "ada@google",
			`value="approve"`,
		} {
			if !strings.Contains(pg.body, want) {
				t.Errorf("no %q in the page", want)
			}
		}
		if trip := f.departed[len(f.departed)-1]; trip.Purpose != delegation.PurposeSignIn {
			t.Errorf("looking at it has sent the browser away: %+v", trip)
		}
	})
	t.Run("RS-200 RS-202 the person goes to the provider for what is missing, and back", func(t *testing.T) {
		to := link("usr_googleada")
		left := ada.post(to, url.Values{"step": {connectForm(ada.get(to)).step(t)}, "decision": {"approve"}})
		trip := f.departed[len(f.departed)-1]
		if trip.Purpose != delegation.PurposeExtend || trip.UserID != "usr_googleada" ||
			!slices.Equal(trip.Scopes, oauth.Scopes{"calendar.readonly"}) {
			t.Fatalf("got %+v", trip)
		}
		before := sessionCookie(ada)
		pg := ada.back(callback(t, "google", left))
		if pg.status != 200 || !strings.Contains(pg.body, "is connected") || !strings.Contains(pg.body, "Notes") ||
			sessionCookie(ada) != before {
			t.Errorf("got %d %v", pg.status, pg.header)
		}
	})
	t.Run("RS-198 a person may not want to", func(t *testing.T) {
		to, before := link("usr_googleada"), len(f.departed)
		pg := ada.post(to, url.Values{"step": {connectForm(ada.get(to)).step(t)}, "decision": {"deny"}})
		if pg.status != 200 || !strings.Contains(pg.body, "Nothing was changed") || len(f.departed) != before {
			t.Errorf("got %d", pg.status)
		}
	})
	f.set(func(f *providers) { f.person = "bob" })
	bob := r.person()
	bob.signInAt("google")
	t.Run("RS-200 another person's link is refused, to look at and to act on", func(t *testing.T) {
		to, before := link("usr_googleada"), len(f.departed)
		if pg := bob.get(to); pg.status != 403 || strings.Contains(pg.body, "calendar") ||
			strings.Contains(pg.body, `value="approve"`) || strings.Contains(pg.body, "ada") {
			t.Errorf("got %d %s", pg.status, pg.body)
		}
		mine := link("usr_googlebob")
		for _, step := range []string{connectForm(ada.get(to)).step(t), connectForm(bob.get(mine)).step(t)} {
			if pg := bob.post(to, url.Values{"step": {step}, "decision": {"approve"}}); pg.status != 403 ||
				len(f.departed) != before {
				t.Errorf("got %d", pg.status)
			}
		}
		if !strings.Contains(r.log.String(),
			`"event":"connect.refused","user":"usr_googlebob","for_user":"usr_googleada","connector":"google"`) {
			t.Error("not audited")
		}
	})
	t.Run("RS-200 a form is good for the request it was made for, in the browser it was made for", func(t *testing.T) {
		other := link("usr_googlebob")
		step := connectForm(bob.get(link("usr_googlebob"))).step(t)
		if pg := bob.post(other, url.Values{"step": {step}, "decision": {"approve"}}); pg.status != 400 {
			t.Errorf("got %d", pg.status)
		}
		if pg := bob.post(other, url.Values{"step": {connectForm(bob.get(other)).step(t)}, "decision": {"approve"}},
			"Sec-Fetch-Site", "cross-site"); pg.status != 403 {
			t.Errorf("got %d", pg.status)
		}
	})
	t.Run("RS-200 RS-203 who is not signed in signs in first, in a session of whatever age", func(t *testing.T) {
		p, to := r.person(), link("usr_googlebob")
		pg := p.get(to)
		if !strings.Contains(pg.body, `name="password"`) || strings.Contains(pg.body, "calendar") {
			t.Fatalf("got %d %s", pg.status, pg.body)
		}
		form := pg.body[:strings.Index(pg.body, "Continue with <bdi>Google")]
		left := p.post("/depart", url.Values{"step": {page{body: form[strings.LastIndex(form, "<form"):]}.step(t)}})
		back := p.back(callback(t, "google", left))
		if back.status != 303 || back.header.Get("Location") != to {
			t.Fatalf("got %d %v", back.status, back.header)
		}
		if pg := p.get(to); pg.status != 200 || !strings.Contains(pg.body, `value="approve"`) {
			t.Errorf("got %d", pg.status)
		}
	})
	t.Run("RS-200 signing in with a password leads back too, and to a refusal if it is another person's",
		func(t *testing.T) {
			p, to := r.person(), link("usr_googlebob")
			pg := p.get(to)
			body := pg.body[strings.Index(pg.body, `action="/login"`):]
			back := p.post("/login",
				url.Values{"step": {page{body: body}.step(t)}, "username": {"alice"},
					"password": {"correct horse battery"}})
			if back.header.Get("Location") != to {
				t.Fatalf("got %d %v", back.status, back.header)
			}
			if pg := p.get(to); pg.status != 403 {
				t.Errorf("got %d", pg.status)
			}
		})
	t.Run("RS-201 it expires, and cannot be tampered with", func(t *testing.T) {
		to := link("usr_googlebob")
		changed := to[:len(to)-8] + "AAAAAAAA"
		for _, bad := range []string{"/connect/x", "/connect/%00", changed, "/connect/" + strings.Repeat("A", 4000)} {
			if pg := bob.get(bad); pg.status != 400 || strings.Contains(pg.body, `value="approve"`) {
				t.Errorf("%.30s: got %d", bad, pg.status)
			}
		}
		r.advance(15 * time.Minute)
		if pg := bob.get(to); pg.status != 400 {
			t.Errorf("after a quarter of an hour: got %d", pg.status)
		}
	})
	t.Run("RS-199 it authorizes no client: without a token the MCP server is as closed as before", func(t *testing.T) {
		for _, c := range bob.get(link("usr_googlebob")).header.Values("Location") {
			t.Errorf("it leads to %q", c)
		}
	})
}

// PE-04: a request of a resource server links a further account only after authentication.
func TestConnectNeedsAProof(t *testing.T) {
	r, f := delegated(t)
	f.set(func(f *providers) { f.person = "mallory" })
	alice := r.person()
	alice.signInHere()
	u, err := r.store.UserByName(t.Context(), "alice")
	if err != nil {
		t.Fatal(err)
	}
	link := func() string {
		return strings.TrimPrefix(r.links.URL(r.links.For(
			delegation.TokenRequest{UserID: u.ID, Provider: "google", Resource: testResource},
			oauth.Scopes{"calendar.readonly"})), r.Issuer())
	}
	press := func(p *person) page {
		to := link()
		return p.post(to, url.Values{"step": {connectForm(p.get(to)).step(t)}, "decision": {"approve"}})
	}
	claim := func(p *person, asked page) page {
		return p.post("/claim", url.Values{"step": {claimStep(t, asked)}, "decision": {"approve"}})
	}
	tied := func(want int) {
		t.Helper()
		if all, err := r.store.Identities(t.Context(), u.ID); err != nil || len(all) != want {
			t.Errorf("got %v, %v, want %d", all, err, want)
		}
	}
	thief := r.stolen(alice)
	press(thief).leads(t, "/prove?to=")
	if len(f.departed) != 0 {
		t.Errorf("sent to the provider: %+v", f.departed)
	}
	asked := alice.back(callback(t, "google", press(alice)))
	r.advance(6 * time.Minute)
	claim(alice, asked).leads(t, "/prove?to=")
	tied(0)
	prove := alice.get(alice.there(press(alice)))
	back := alice.post("/prove", url.Values{"step": {prove.step(t)}, "password": {alicesPassword}})
	back.leads(t, "/connect/")
	r.restart(func(c *Config) { c.SignIn.SecondFactor = "required" })
	press(alice).leads(t, "/login/second?to=")
	r.restart(func(c *Config) { c.SignIn.SecondFactor = "off" })
	asked = alice.back(callback(t, "google", press(alice)))
	claim(alice, asked).has(t, 200, "is connected")
	tied(1)
	r.advance(6 * time.Minute)
	if pg := press(alice); strings.HasPrefix(alice.there(pg), "/prove") {
		t.Error("for an account that is connected already a proof is asked")
	}
}

// EN-05: a session without a required second factor gives an MCP server no more access at a
// provider, even if an account there is linked.
func TestConnectOwes(t *testing.T) {
	r, f := delegated(t)
	ada := r.person()
	ada.signInAt("google")
	full := r.links.URL(r.links.For(
		delegation.TokenRequest{UserID: "usr_googleada", Provider: "google", Resource: testResource},
		oauth.Scopes{"calendar.readonly"}))
	to := strings.TrimPrefix(full, r.Issuer())
	approval := url.Values{"step": {connectForm(ada.get(to)).step(t)}, "decision": {"approve"}}
	r.restart(func(c *Config) { c.SignIn.SecondFactor = "required" })
	before := len(f.departed)
	ada.post(to, approval).leads(t, "/login/second?to=")
	if len(f.departed) != before {
		t.Errorf("EN-05: the browser was sent to the provider: %+v", f.departed[before:])
	}
}
