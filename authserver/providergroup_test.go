package authserver

import (
	"context"
	"net/http"
	"slices"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestProviderGroups: RU-19. Rules about a group hold for people whom a provider group makes its members.
func TestProviderGroups(t *testing.T) {
	r, f := delegated(t)
	r.groups("staff", "readers")
	r.rule(storage.AccessRule{Group: "staff", All: true})
	r.rule(storage.AccessRule{Group: "readers", Scopes: oauth.Scopes{"mcp"}})
	says := func(groups ...string) { f.set(func(f *providers) { f.groups = groups }) }
	someone := r.person()
	at := callback(t, "google", someone.leave(authorizeQuery("provider", "google", "scope", wide().Get("scope"))))
	if got := responseOf(t, someone.back(at)).Get("error"); got != "access_denied" {
		t.Errorf("in no group: got %q, want access_denied", got)
	}
	says("staff")
	p := r.person()
	out := p.signInAt("google", "scope", wide().Get("scope"))
	if scopes := oauth.ParseScopes(out["scope"].(string)); !scopes.Has("mcp", "notes:write") {
		t.Fatalf("in staff: got %v", out)
	}
	says("readers")
	status, next := p.token(refreshForm(out["refresh_token"]))
	if scopes := oauth.ParseScopes(next["scope"].(string)); status != http.StatusOK || scopes.Has("notes:write") {
		t.Errorf("in readers at the next refresh: got %d %v, want mcp alone", status, next)
	}
	f.set(func(f *providers) {
		f.groupsErr = oauth.NewError(oauth.TemporarilyUnavailable, "The provider is away.")
	})
	status, away := p.token(refreshForm(next["refresh_token"]))
	if status != http.StatusServiceUnavailable || away["error"] != "temporarily_unavailable" {
		t.Errorf("an unknown membership: got %d %v, want temporarily_unavailable", status, away)
	}
	f.set(func(f *providers) { f.groupsErr = nil })
	says()
	if status, out := p.token(refreshForm(next["refresh_token"])); out["error"] != "invalid_grant" {
		t.Errorf("in no group at the next refresh: got %d %v, want invalid_grant", status, out)
	}
}

func (f *providers) ProviderGroups(_ context.Context, _ string, groups []string) ([]storage.ProviderGroup, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []storage.ProviderGroup
	for _, g := range f.groups {
		if slices.Contains(groups, g) {
			out = append(out, storage.ProviderGroup{Group: g, Connector: "google", Name: "of " + g})
		}
	}
	return out, f.groupsErr
}
