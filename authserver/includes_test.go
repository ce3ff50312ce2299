package authserver

import (
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Security PM4, SP-06: a scope is available only to users who may have every scope that it
// includes, wherever scopes are given or used.
func TestScopesThatInclude(t *testing.T) {
	r, f := delegated(t, func(c *Config) {
		c.Resources[0].Scopes = append(c.Resources[0].Scopes,
			storage.ScopeText{Name: "notes:manage", Description: "manage notes", Implies: []string{"notes:write"}},
			storage.ScopeText{Name: "all", Description: "do everything", Implies: []string{"notes:manage"}})
	})
	// no rule names all or notes:manage; this user may not write
	noEditor := func(t *testing.T) {
		f.set(func(f *providers) { f.permitted = oauth.Scopes{"mcp", "notes:manage", "all"} })
		t.Cleanup(func() { f.set(func(f *providers) { f.permitted = nil }) })
	}
	t.Run("at the sign-in", func(t *testing.T) {
		noEditor(t)
		for _, scope := range []string{"all", "notes:manage", "notes:write", "all notes:write"} {
			p := r.person()
			if got := responseOf(t,
				p.back(callback(t, "google", p.leave(authorizeQuery("provider", "google", "scope", scope))))); got.Get(
				"error") != "access_denied" {
				t.Errorf("%s: got %v", scope, got)
			}
		}
		p := r.person()
		if out := p.signInAt("google", "scope", "mcp all"); out["scope"] != "mcp" {
			t.Errorf("got %v", out["scope"])
		}
		if got := responseOf(t,
			p.get("/authorize?"+authorizeQuery("scope", "all").Encode())); got.Get("error") != "access_denied" {
			t.Errorf("once signed in: got %v", got)
		}
	})
	t.Run("those to whom all of it is open have it", func(t *testing.T) {
		if out := r.person().signInAt("google", "scope", "all"); out["scope"] != "all" {
			t.Errorf("got %v", out)
		}
	})
	t.Run("at a refresh", func(t *testing.T) {
		p := r.person()
		mixed, pure := p.signInAt("google", "scope", "mcp all"), r.person().signInAt("google", "scope", "all")
		noEditor(t)
		if _, got := p.token(refreshForm(mixed["refresh_token"])); got["scope"] != "mcp" {
			t.Errorf("got %v", got)
		}
		status, got := p.token(refreshForm(pure["refresh_token"]))
		wantError(t, status, got, 400, oauth.InvalidGrant)
	})
	t.Run("at a token exchange, and so in the gateway's broker", func(t *testing.T) {
		f.set(func(f *providers) {
			f.token = delegation.Token{Token: upstreamToken, Type: "Bearer", ExpiresAt: r.now().Add(time.Hour)}
		})
		p := r.person()
		out := p.signInAt("google", "scope", "all")
		rs := []string{"Authorization", basic("machine", testSecret)}
		if status, got := p.token(exchangeForm(out["access_token"]), rs...); status != 200 {
			t.Errorf("before: got %d %v", status, got)
		}
		noEditor(t)
		asked := len(f.asked)
		status, got := p.token(exchangeForm(out["access_token"]), rs...)
		wantError(t, status, got, 400, oauth.InvalidRequest)
		if len(f.asked) != asked {
			t.Error("the broker was asked all the same")
		}
	})
}
