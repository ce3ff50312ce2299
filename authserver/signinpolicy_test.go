package authserver

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/authkit"
)

// TestPE02RelatedOrigins checks that browsers can read the other origins for passkeys at the root
// of the origin.
func TestPE02RelatedOrigins(t *testing.T) {
	r := newRig(t)
	read := func(method, host string) *http.Response {
		req := httptest.NewRequest(method, "https://"+host+"/.well-known/webauthn", nil)
		w := httptest.NewRecorder()
		r.mux.Load().ServeHTTP(w, req)
		return w.Result()
	}
	if got := read("GET", "127.0.0.1").StatusCode; got != http.StatusNotFound {
		t.Errorf("without passkeys: got %d", got)
	}
	r.restart(func(c *Config) { c.Issuer = "https://auth.example.com/deep" })
	if got := read("GET", "auth.example.com").StatusCode; got != http.StatusNotFound {
		t.Errorf("with nothing to list: got %d", got)
	}
	r.restart(func(c *Config) {
		c.SignIn.PasskeyRPID, c.SignIn.PreviousHosts = "example.com", []string{"old.example.org"}
	})
	for _, host := range []string{"auth.example.com", "old.example.org", "example.com"} {
		resp := read("GET", host)
		var doc struct {
			Origins []string `json:"origins"`
		}
		body, _ := io.ReadAll(resp.Body)
		err := json.Unmarshal(body, &doc)
		if err != nil || resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/json" ||
			!slices.Equal(doc.Origins, []string{"https://auth.example.com", "https://old.example.org"}) {
			t.Errorf("%s: got %d %s %v", host, resp.StatusCode, body, err)
		}
	}
	if got := read("POST", "auth.example.com").StatusCode; got != http.StatusMethodNotAllowed {
		t.Errorf("POST: got %d", got)
	}
}

func TestSignInPolicyIsChecked(t *testing.T) {
	for want, policy := range map[string]SignInPolicy{
		"must be off, optional or required": {SecondFactor: "enrolled"},
		"enrolled for administrators":       {AdminsSecondFactor: "never"},
		"nor a domain above it":             {PasskeyRPID: "example.net"},
		"not a host name":                   {PreviousHosts: []string{"https://x"}},
	} {
		c, err := Config{Issuer: "https://auth.example.com", SignIn: policy}.withDefaults()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", c.SignIn, err, want)
		}
	}
}

// PE-02: a user whose only passkey is for the previous host signs in at the new one. The page does
// not know the user, and the browser is asked for the passkeys of one host at a time.
func TestPE02SignInWithAPasskeyOfTheEarlierHost(t *testing.T) {
	r := newRig(t, named)
	a := r.authenticator()
	r.alice().addPasskey(a)
	r.madeFor(a, "old.example")
	earlier := func(pg page) page {
		form := passkeyForm.FindString(pg.body)
		return page{pg.status, pg.header, strings.Replace(pg.body, form, "", 1)}
	}

	r.restart(func(c *Config) { c.SignIn.PreviousHosts = []string{"old.example"} })
	p := r.person()
	pg := p.get("/login")
	if _, options := pg.asked(t); !strings.Contains(string(options), `"rpId":"localhost"`) {
		t.Errorf("the first form is not for the new host: %s", options)
	}
	earlier(pg).has(t, http.StatusOK, "old.example")
	p.post("/login/passkey", p.answered(earlier(pg), a)).leads(t, "/")
	if !p.signedIn() {
		t.Error("not signed in")
	}

	r.restart(func(c *Config) { c.SignIn.PreviousHosts = nil })
	if pg := r.person().get("/login"); strings.Contains(pg.body, "old.example") {
		t.Error("an earlier host that is not configured is asked for")
	}
}

// PE-02, RU-13: a page does not offer passkeys of a previous host without any.
func TestPE02NoEarlierHostWithoutPasskeys(t *testing.T) {
	r := newRig(t, named, func(c *Config) { c.SignIn.PreviousHosts = []string{"old.example"} })
	r.alice().addPasskey(r.authenticator())
	pg := r.person().get("/login")
	if strings.Contains(pg.body, "old.example") || strings.Contains(pg.body, "earlier") {
		t.Error("the page has a form for passkeys of an earlier host, but the user has none")
	}
}

// madeFor changes alice's only passkey, which an authenticator holds, to another host.
func (r *rig) madeFor(a *authkit.Authenticator, rpID string) {
	r.t.Helper()
	u, err := r.store.UserByName(r.t.Context(), "alice")
	if err != nil {
		r.t.Fatal(err)
	}
	all, err := r.store.Ways(r.t.Context(), u.ID)
	if err != nil || len(all) != 1 {
		r.t.Fatalf("got %v, %v", all, err)
	}
	by := storage.Admission{Passwords: true}
	if err := r.store.RemoveWay(r.t.Context(), u.ID, all[0].ID, by, storage.Hash{}); err != nil {
		r.t.Fatal(err)
	}
	all[0].RPID, a.Passkeys[0].RPID = rpID, rpID
	if err := r.store.AddWay(r.t.Context(), all[0], storage.Hash{}); err != nil {
		r.t.Fatal(err)
	}
}
