package authserver

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

const ownResource = "https://auth.example.com/api/v1"

// TestAdministrationIsForRoles checks that a user without a role gets no token for the
// administration, with any client and any method (OB-10).
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
	got := responseOf(t, answered(func() {}))
	if !got.Has("code") {
		t.Errorf("approved with a role: got %v, want a code", got)
	}
	_, tokens := r.person().token(codeForm(got.Get("code"), "resource", ownResource))
	status, tokens := r.person().token(refreshForm(tokens["refresh_token"]))
	if status != http.StatusOK || tokens["scope"] != "admin:read" {
		t.Errorf("refreshed with a role: got %d %v", status, tokens)
	}
	lost := func() {
		if err := r.store.SetRole(t.Context(), alice.ID, ""); err != nil {
			t.Fatal(err)
		}
	}
	if got := answered(lost); !strings.Contains(got.body, `name="password"`) {
		t.Errorf("approved after the role was taken away: got %d %.300s, want the login page", got.status, got.body)
	}
	for _, form := range []url.Values{
		refreshForm(tokens["refresh_token"], "scope", "admin:read"), refreshForm(tokens["refresh_token"]),
	} {
		if status, got := r.person().token(form); status != http.StatusBadRequest || got["error"] != "invalid_grant" {
			t.Errorf("refreshed after the role was taken away: got %d %v, want invalid_grant", status, got)
		}
	}
}

// TestOwnResourcesInAttempts checks the resources that an attempt names. If a client names
// something at the server's own origin, it means the administration, and the operator sees its URL;
// otherwise the URL is not shown (OB-01). The user's page shows neither (OB-02). An unknown
// resource is redacted in the log.
func TestOwnResourcesInAttempts(t *testing.T) {
	r := newRig(t, keepAttempts, func(c *Config) {
		c.Resources = append(c.Resources, storage.Resource{URI: ownResource, Name: "API", Own: true})
	})
	for resource, own := range map[string]bool{
		"https://auth.example.com/api/v2":                               true,
		"https://bob:hunter2@mcp.example.com/else?key=s3cret":           false,
		"https://bob:hunter2@auth.example.com/api/v1?key=s3cret#s3cret": false,
	} {
		pg := r.person().get("/authorize?" + authorizeQuery("resource", resource).Encode())
		a := r.lastAttempt()
		if a.Fault != attempt.ResourceUnknown || strings.Contains(a.Text, ownResource) != own ||
			!strings.Contains(a.Text, testResource) || own && strings.HasSuffix(resource, "v2") &&
			a.Difference.Want != "...//auth.example.com/api/v1" {
			t.Errorf("%s: got %s, %+v", resource, a.Text, a.Difference)
		}
		to := pg.header.Get("Location")
		if strings.Contains(pg.body, ownResource) || strings.Contains(to, url.QueryEscape(ownResource)) {
			t.Errorf("%s: the answer names %s", resource, ownResource)
		}
		r.advance(time.Hour)
	}
	if log := r.log.String(); strings.Contains(log, "s3cret") || strings.Contains(log, "hunter2") ||
		!strings.Contains(log, `"resource":"https://...@mcp.example.com/else?..."`) {
		t.Errorf("got %s", log)
	}
}
