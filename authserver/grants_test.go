package authserver

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// putClient adds a client: a missing permission shows only with a client that lacks it.

func (r *rig) putClient(c storage.Client) {
	r.t.Helper()
	c.CreatedAt = r.now()
	if err := r.store.PutClient(r.t.Context(), c); err != nil {
		r.t.Fatal(err)
	}
}

func TestWhoGetsARefreshToken(t *testing.T) {
	r := newRig(t)
	hash := storage.Hash(secrets.Hash(testSecret))
	const redirect = "https://web.example.com/cb"
	r.putClient(storage.Client{
		ID: "code-only", Name: "Code only", RedirectURIs: []string{redirect}, GrantTypes: []string{oauth.GrantCode},
		AuthMethod: "client_secret_basic", SecretHash: &hash, Source: storage.SourceStatic})
	sign := []string{"Authorization", basic("code-only", testSecret)}
	redeem := func(scope string) map[string]any {
		t.Helper()
		p := r.person()
		query := authorizeQuery("client_id", "code-only", "redirect_uri", redirect, "scope", scope, "prompt", "consent")
		status, out := p.token(codeForm(p.approve(query).Get("code"), "client_id", "", "redirect_uri", redirect),
			sign...)
		if status != http.StatusOK {
			t.Fatalf("got %d %v", status, out)
		}
		return out
	}
	t.Run("AS-93 a client with the code grant alone gets none", func(t *testing.T) {
		if out := redeem("mcp"); out["refresh_token"] != nil {
			t.Errorf("got %v, want no refresh token", out)
		}
	})
	t.Run("AS-93 with offline_access it gets one, and may use it", func(t *testing.T) {
		out := redeem("mcp offline_access")
		token, _ := out["refresh_token"].(string)
		if token == "" {
			t.Fatalf("got %v, want a refresh token", out)
		}
		if status, out := r.person().token(refreshForm(token, "client_id", ""), sign...); status != http.StatusOK {
			t.Errorf("refresh: got %d %v, want 200", status, out)
		}
	})
	t.Run("AS-85 a client with neither grant may not refresh", func(t *testing.T) {
		status, out := r.person().token(refreshForm("x", "client_id", ""), "Authorization",
			basic("machine", testSecret))
		if status != http.StatusBadRequest || out["error"] != "unauthorized_client" {
			t.Errorf("got %d %v, want unauthorized_client", status, out)
		}
	})
}

func TestMachineOfOneScope(t *testing.T) {
	r := newRig(t)
	hash := storage.Hash(secrets.Hash(testSecret))
	r.putClient(storage.Client{
		ID: "writer", GrantTypes: []string{oauth.GrantClientCredentials}, AuthMethod: "client_secret_basic",
		SecretHash: &hash,
		Scopes:     []string{"notes:write"}, Resources: []string{testResource}, Source: storage.SourceStatic})
	status, out := r.person().token(map[string][]string{"grant_type": {oauth.GrantClientCredentials}},
		"Authorization", basic("writer", testSecret))
	if status != http.StatusOK || out["scope"] != "notes:write" {
		t.Errorf("AS-176 registered for a scope that is not default: got %d %v, want notes:write", status, out)
	}
}

func TestRemovedResource(t *testing.T) {
	const other = "https://other.example.com/mcp"
	r := newRig(t, func(c *Config) {
		c.Resources = append(c.Resources,
			storage.Resource{URI: other, Name: "Other", Scopes: []storage.ScopeText{{Name: "other", Default: true}}})
	})
	p := r.person()
	status, out := p.token(
		codeForm(p.approve(authorizeQuery("resource", other, "scope", "other")).Get("code"), "resource", other),
	)
	if status != http.StatusOK {
		t.Fatalf("got %d %v", status, out)
	}
	t.Run("AS-103 AS-107 the access token is for the resource that both requests name", func(t *testing.T) {
		if got := r.verified(t, out["access_token"].(string)).Audience; got != other {
			t.Errorf("got %q, want %q", got, other)
		}
	})
	t.Run("AS-108 another resource that is known is invalid_target, and spends nothing", func(t *testing.T) {
		status, out := p.token(refreshForm(out["refresh_token"], "resource", testResource))
		if status != http.StatusBadRequest || out["error"] != "invalid_target" {
			t.Errorf("got %d %v, want invalid_target", status, out)
		}
	})
	r.restart(func(c *Config) { c.Resources = c.Resources[:1] })
	t.Run("AS-105 a resource that the server does not know any more gets no token", func(t *testing.T) {
		status, out := p.token(refreshForm(out["refresh_token"]))
		if status != http.StatusBadRequest || out["error"] != "invalid_grant" {
			t.Errorf("got %d %v, want invalid_grant", status, out)
		}
	})
}

func TestAssertionKeyForAnotherAlgorithm(t *testing.T) {
	r, signers := newAssertionRig(t)
	key := signers["keyed-rs"]
	for alg, want := range map[string]int{"RS256": http.StatusOK, "PS256": http.StatusUnauthorized} {
		set, err := json.Marshal(jose.JSONWebKeySet{
			Keys: []jose.JSONWebKey{{Key: key.key.Public(), KeyID: "k1", Algorithm: alg, Use: "sig"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		key.id = "published-for-" + alg
		r.putClient(storage.Client{
			ID: key.id, GrantTypes: []string{oauth.GrantClientCredentials}, AuthMethod: oauth.PrivateKeyJWT, JWKS: set,
			Scopes: []string{"mcp"}, Source: storage.SourceStatic})
		status, out := r.person().token(machineForm(key.sign(t, r.claims(key.id, "a"), nil)))
		if status != want || want != http.StatusOK && out["error"] != "invalid_client" {
			t.Errorf("RFC 7517 §4.4: a key for %s and an assertion of RS256: got %d %v, want %d", alg, status, out,
				want)
		}
	}
}
