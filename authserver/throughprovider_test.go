package authserver

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// through signs a user in at a provider from a page that offers it, and returns the page after
// that.
func (p *person) through(t *testing.T, provider, label, path string) page {
	t.Helper()
	for _, form := range strings.Split(p.get(path).body, "<form")[1:] {
		if strings.Contains(form, "Continue with <bdi>"+label) {
			back := p.back(callback(t, provider, p.post("/depart", url.Values{"step": {page{body: form}.step(t)}})))
			if back.status != http.StatusSeeOther {
				t.Fatalf("got %d %.300s", back.status, back.body)
			}
			return p.get(p.there(back))
		}
	}
	t.Fatalf("%s does not offer %s", path, label)
	return page{}
}

// A user who signs in at a provider on the way to a code continues with it.
func TestCodesThroughAProvider(t *testing.T) {
	r, _ := delegated(t)
	tv := storage.Client{ID: "tv", Name: "A TV", GrantTypes: []string{oauth.GrantDeviceCode}, AuthMethod: "none",
		Source: storage.SourceDynamic, CreatedAt: r.now()}
	if err := r.store.PutClient(t.Context(), tv); err != nil {
		t.Fatal(err)
	}
	t.Run("AS-240 of a device", func(t *testing.T) {
		p := r.person()
		_, a := p.ask()
		pg := p.through(t, "github", "GitHub", devicePath(a.UserCode))
		if pg := p.decideDevice(pg, "approve"); pg.status != http.StatusOK {
			t.Fatalf("got %d %.300s", pg.status, pg.body)
		}
		if status, out := p.poll(a); status != http.StatusOK || out["access_token"] == nil {
			t.Errorf("the device gets %d %v", status, out)
		}
	})
	t.Run("PE-15 of another browser, which rests on the provider as well", func(t *testing.T) {
		phone, waits := r.person(), r.person()
		w := waits.askRemote("/login")
		pg := phone.through(t, "google", "Google", devicePath(w.code))
		if pg := phone.decideRemote(pg, "approve", w.number); !strings.Contains(pg.body, "The browser is signed in") {
			t.Fatalf("got %d %.300s", pg.status, pg.body)
		}
		pg = waits.get(w.at)
		if pg.status != http.StatusSeeOther || !strings.Contains(waits.get("/account").body, "ada") {
			t.Fatalf("the browser that waited: got %d", pg.status)
		}
		if _, err := r.store.EndUpstreams(t.Context(), storage.UpstreamKey{Connector: "google"}, "logged-out",
			r.now()); err != nil {
			t.Fatal(err)
		}
		if waits.get("/account").status == http.StatusOK {
			t.Error("its session outlives the one at the provider")
		}
	})
}

// If passwords are disabled, they cannot authenticate and cannot be set.
func TestNoPasswords(t *testing.T) {
	r, _ := delegated(t, named, func(c *Config) { c.NoLocalLogin = true })
	p := r.person()
	p.through(t, "google", "Google", "/login")
	sealed := func(purpose string, form any) url.Values {
		step, err := r.sessions.SealStep(purpose, browserOf(t, r, p), form)
		if err != nil {
			t.Fatal(err)
		}
		return url.Values{"step": {step}, "password": {belongingPassword}}
	}
	u, err := r.store.UserByName(t.Context(), "ada@google")
	if err != nil {
		t.Fatal(err)
	}
	p.get("/account/password").has(t, http.StatusForbidden, "")
	p.post("/account/password", sealed(purposePassword, entry.WayForm{UserID: u.ID})).has(t, http.StatusForbidden, "")
	if u, err = r.store.UserByName(t.Context(), u.Name); err != nil || u.PasswordHash != "" {
		t.Errorf("got %+v, %v", u, err)
	}
	// A password that was set before they were disabled is wrong everywhere, so that no response
	// reveals whether it is right.
	if err := r.users.SetPassword(t.Context(), u.Name, belongingPassword, true); err != nil {
		t.Fatal(err)
	}
	p.through(t, "google", "Google", "/login")
	form := entry.ProveForm{UserID: u.ID, To: entry.Destination{Page: pageRecovery}}
	p.post("/prove", sealed(purposeProve, form)).has(t, http.StatusUnauthorized, "")
}
