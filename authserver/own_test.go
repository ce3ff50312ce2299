package authserver

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/storage"
)

const ownResource = "https://auth.example.com/api/v1"

// TestAdministrationIsForRoles: OB-10: who has no role gets no token for the administration, whatever client
// asks, and by no way.
func TestAdministrationIsForRoles(t *testing.T) {
	r, p := withDevice(t, func(c *Config) {
		c.Resources = append(c.Resources, storage.Resource{
			URI: ownResource, Name: "API", Own: true,
			Scopes: []storage.ScopeText{{Name: "admin:read", Description: "see all", Dangerous: true}},
		})
	})
	query := authorizeQuery("resource", ownResource, "scope", "admin:read")
	device := func() page {
		status, a := p.ask("resource", ownResource, "scope", "admin:read")
		if status != http.StatusOK {
			t.Fatalf("got %d %v", status, a)
		}
		return p.get(devicePath(a.UserCode))
	}
	const refused = "Your account may not use what the application asks for."
	for name, pg := range map[string]page{"browser": p.login(query), "device": device()} {
		if pg.status != http.StatusForbidden || !strings.Contains(pg.body, refused) {
			t.Errorf("%s without a role: got %d %.300s, want 403 %q", name, pg.status, pg.body, refused)
		}
	}
	alice, err := r.store.UserByName(t.Context(), "alice")
	if err == nil {
		err = r.store.SetRole(t.Context(), alice.ID, storage.Support)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := p.login(query); got.status != http.StatusOK || strings.Contains(got.body, refused) {
		t.Errorf("with a role: got %d %.300s, want the consent page", got.status, got.body)
	}
	query.Set("prompt", "consent")
	answered := func(before func()) page {
		browser := r.person()
		pg := browser.login(query)
		before()
		return browser.decided(pg, url.Values{"scope": {"admin:read"}})
	}
	if got := responseOf(t, answered(func() {})); !got.Has("code") {
		t.Errorf("approved with a role: got %v, want a code", got)
	}
	lost := func() {
		if err := r.store.SetRole(t.Context(), alice.ID, ""); err != nil {
			t.Fatal(err)
		}
	}
	if got := answered(lost); !strings.Contains(got.body, `name="password"`) {
		t.Errorf("approved after the role was taken away: got %d %.300s, want the login page", got.status, got.body)
	}
}
