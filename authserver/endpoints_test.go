package authserver

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/recent"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

func TestRevocation(t *testing.T) {
	r := newRig(t)
	p := r.person()
	revoke := func(token string, kv ...string) page {
		v := url.Values{"token": {token}, "client_id": {"app"}}
		for i := 0; i < len(kv); i += 2 {
			v.Set(kv[i], kv[i+1])
		}
		return p.post("/revoke", v)
	}
	for _, kind := range []string{"refresh_token", "access_token"} {
		t.Run("AS-226 RFC 7009: revoking the "+kind+" ends the grant", func(t *testing.T) {
			out := p.signIn()
			if pg := revoke(out[kind].(string)); pg.status != 200 {
				t.Fatalf("got %d %s", pg.status, pg.body)
			}
			status, answer := p.token(refreshForm(out["refresh_token"]))
			wantError(t, status, answer, 400, oauth.InvalidGrant)
			if in, err := r.Introspect(t.Context(), out["access_token"].(string)); in.Active || err != nil {
				t.Errorf("got %+v, %v", in, err)
			}
		})
	}
	t.Run("AS-226 RFC 7009 2.2: an unknown token is a success", func(t *testing.T) {
		if pg := revoke("nonsense"); pg.status != 200 {
			t.Errorf("got %d", pg.status)
		}
	})
	t.Run("AS-226 only the owner may revoke", func(t *testing.T) {
		out := p.signIn()
		for _, kind := range []string{"refresh_token", "access_token"} {
			if pg := revoke(out[kind].(string), "client_id", "static", "client_secret", testSecret); pg.status != 400 {
				t.Errorf("%s: got %d", kind, pg.status)
			}
		}
		if status, _ := p.token(refreshForm(out["refresh_token"])); status != 200 {
			t.Error("a stranger revoked it")
		}
	})
	t.Run("AS-226 a machine's token is denied", func(t *testing.T) {
		_, out := p.token(url.Values{"grant_type": {"client_credentials"}}, "Authorization",
			basic("machine", testSecret))
		token := out["access_token"].(string)
		if pg := revoke(token, "client_id", "machine", "client_secret", testSecret); pg.status != 200 {
			t.Fatalf("got %d", pg.status)
		}
		if in, _ := r.Introspect(t.Context(), token); in.Active {
			t.Error("still active")
		}
	})
	t.Run("AS-226 an unauthenticated caller is refused", func(t *testing.T) {
		if pg := revoke("x", "client_id", "static"); pg.status != 401 {
			t.Errorf("got %d", pg.status)
		}
	})
}

// A machine has no grant that a resource could revoke: its token ends because the resource is
// removed (AS-227).
func TestAMachinesTokenEndsWithItsResource(t *testing.T) {
	r := newRig(t)
	p := r.person()
	const added = "https://added.example/mcp"
	hash := storage.Hash(secrets.Hash(testSecret))
	err := errors.Join(
		r.store.AddResource(t.Context(), storage.Resource{
			URI: added, Name: "Added", Scopes: []storage.ScopeText{{Name: "mcp", Default: true}},
		}),
		r.store.PutClient(t.Context(), storage.Client{
			ID: "anywhere", GrantTypes: []string{oauth.GrantClientCredentials}, AuthMethod: "client_secret_basic",
			SecretHash: &hash, Source: storage.SourceStatic,
		}),
	)
	if err != nil {
		t.Fatal(err)
	}
	r.advance(recent.TTL)
	_, out := p.token(url.Values{"grant_type": {"client_credentials"}, "resource": {added}}, "Authorization",
		basic("anywhere", testSecret))
	token, _ := out["access_token"].(string)
	if in, err := r.Introspect(t.Context(), token); err != nil || !in.Active {
		t.Fatalf("got %+v, %v; want a token that is active", in, err)
	}
	if err := r.store.RemoveResource(t.Context(), added, r.now()); err != nil {
		t.Fatal(err)
	}
	r.advance(recent.TTL)
	if in, err := r.Introspect(t.Context(), token); err != nil || in.Active {
		t.Errorf("after the resource was removed: got %+v, %v; want it inactive", in, err)
	}
}

func TestIntrospection(t *testing.T) {
	r := newRig(t)
	p := r.person()
	hash := storage.Hash(r.ring.MAC("x", nil))
	if err := r.store.PutClient(t.Context(),
		storage.Client{
			ID: "other-rs", AuthMethod: "client_secret_basic", SecretHash: &hash, Source: storage.SourceStatic,
			Resources: []string{"https://other.example.com"}, CreatedAt: r.now()}); err != nil {
		t.Fatal(err)
	}
	introspect := func(token, header string) (int, oauth.Introspection, string) {
		pg := p.post("/introspect", url.Values{"token": {token}}, "Authorization", header)
		var out oauth.Introspection
		json.Unmarshal([]byte(pg.body), &out)
		return pg.status, out, strings.TrimSpace(pg.body)
	}
	rs := basic("machine", testSecret)
	tokens := p.signIn()
	t.Run("AS-227 an active token, to the server it is for", func(t *testing.T) {
		status, out, _ := introspect(tokens["access_token"].(string), rs)
		if status != 200 || !out.Active || out.Audience != testResource || out.ClientID != "app" ||
			out.Issuer != r.Issuer() ||
			out.Scope != "mcp" || out.TokenType != "Bearer" || out.Subject == "" || out.Expires == 0 {
			t.Errorf("got %d %+v", status, out)
		}
	})
	t.Run("AS-227 a refresh token is not active for a resource server, which might take it for an access token",
		func(t *testing.T) {
			if status, _, body := introspect(tokens["refresh_token"].(string), rs); status != 200 ||
				body != `{"active":false}` {
				t.Errorf("got %d %s", status, body)
			}
		})
	t.Run("AS-227 its client may ask about it, and is told what it is", func(t *testing.T) {
		p := r.person()
		code := p.approve(authorizeQuery("client_id", "static")).Get("code")
		_, own := p.token(codeForm(code, "client_id", ""), "Authorization", basic("static", testSecret))
		_, out, _ := introspect(own["refresh_token"].(string), basic("static", testSecret))
		if !out.Active || out.Expires != r.now().Add(r.cfg.Tokens.RefreshIdleTTL).Unix() ||
			out.TokenType != "refresh_token" {
			t.Errorf("got %+v", out)
		}
	})
	for name, token := range map[string]string{
		"garbage":            "x",
		"a forged signature": tokens["access_token"].(string)[:40] + "AAAA" + tokens["access_token"].(string)[44:],
	} {
		t.Run("AS-227 inactive says only that: "+name, func(t *testing.T) {
			if status, _, body := introspect(token, rs); status != 200 || body != `{"active":false}` {
				t.Errorf("got %d %s", status, body)
			}
		})
	}
	t.Run("AS-227 a public client may not ask", func(t *testing.T) {
		if status, _, _ := introspect("x", basic("app", "")); status != 401 {
			t.Errorf("got %d", status)
		}
	})
	t.Run("AS-227 a caller without credentials may not ask", func(t *testing.T) {
		if pg := p.post("/introspect", url.Values{"token": {"x"}}); pg.status != 401 {
			t.Errorf("got %d", pg.status)
		}
	})
	t.Run("AS-227 AS-116 AS-117 expiry", func(t *testing.T) {
		r.advance(r.cfg.Tokens.AccessTTL)
		if _, _, body := introspect(tokens["access_token"].(string), rs); body != `{"active":false}` {
			t.Errorf("got %s", body)
		}
	})
}

func TestDiscovery(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Issuer += "/t1"
		c.Registry = &registry{Clients: c.Store, Handler: http.NotFoundHandler()}
	})
	p := r.person()
	for _, path := range []string{
		"/.well-known/oauth-authorization-server/t1", "/.well-known/openid-configuration/t1",
		"/t1/.well-known/openid-configuration",
		"/.well-known/oauth-authorization-server/t1/",
	} {
		t.Run("AS-17 AS-18 AS-19 AS-20 AS-22 AS-23 AS-24 AS-29 "+path, func(t *testing.T) {
			for _, version := range []string{"", "2024-11-05", "2026-07-28", "garbage"} { // AS-13
				pg := p.get(path, "MCP-Protocol-Version", version)
				var doc map[string]any
				if err := json.Unmarshal([]byte(pg.body), &doc); err != nil || pg.status != 200 ||
					pg.header.Get("Content-Type") != "application/json" {
					t.Fatalf("got %d %s", pg.status, pg.body)
				}
				if doc["issuer"] != r.Issuer() || doc["authorization_endpoint"] != r.Issuer()+"/authorize" ||
					!slices.Contains(doc["code_challenge_methods_supported"].([]any), "S256") ||
					doc["authorization_response_iss_parameter_supported"] != true ||
					doc["registration_endpoint"] != r.Issuer()+"/register" || strings.Contains(pg.body, "[]") ||
					strings.Contains(pg.body, "null") {
					t.Errorf("got %s", pg.body)
				}
			}
		})
	}
	t.Run("AS-18 an unknown well-known location is a JSON 404", func(t *testing.T) {
		if pg := p.get("/.well-known/nonsense"); pg.status != 404 || !json.Valid([]byte(pg.body)) {
			t.Errorf("got %d %s", pg.status, pg.body)
		}
	})
	t.Run("AS-17 the endpoints are below the issuer's path", func(t *testing.T) {
		if pg := p.get("/t1/authorize?" + authorizeQuery().Encode()); pg.status != 200 ||
			!strings.Contains(pg.body, `action="/t1/login"`) {
			t.Errorf("got %d", pg.status)
		}
	})
	t.Run("AS-30 registration is advertised only while it is offered", func(t *testing.T) {
		q := newRig(t)
		if pg := q.person().get("/.well-known/oauth-authorization-server"); strings.Contains(pg.body,
			"registration_endpoint") {
			t.Errorf("got %s", pg.body)
		}
	})
	t.Run("AS-31 a resource added at run time changes the document", func(t *testing.T) {
		if err := r.store.AddResource(t.Context(),
			storage.Resource{
				URI: "https://two.example.com/mcp", Scopes: []storage.ScopeText{{Name: "two", Default: true}},
				CreatedAt: r.now()}); err != nil {
			t.Fatal(err)
		}
		r.advance(recent.TTL)
		if pg := p.get("/.well-known/oauth-authorization-server/t1"); !strings.Contains(pg.body, `"two"`) ||
			!strings.Contains(pg.body, "https://two.example.com/mcp") {
			t.Errorf("got %s", pg.body)
		}
	})
}

// TestAdvertised checks that the document matches the supported clients.
func TestAdvertised(t *testing.T) {
	secrets := []string{"client_secret_post", "client_secret_basic"}
	for _, tt := range []struct {
		name      string
		change    func(*Config)
		methods   []string
		documents bool
	}{
		{"AS-26 AS-172 none for public clients, and secrets", func(*Config) {}, append([]string{"none"}, secrets...),
			false},
		{"AS-26 none is left out where there are no public clients", func(c *Config) { c.ConfidentialOnly = true },
			secrets, false},
		{"AS-172 keys of clients", func(c *Config) { c.Registry = &registry{Clients: c.Store} },
			append(append([]string{"none"}, secrets...), oauth.PrivateKeyJWT), false},
		{"AS-28 client ids that are documents",
			func(c *Config) { c.Registry = &registry{Clients: c.Store, Documents: unread{}} },
			append(append([]string{"none"}, secrets...), oauth.PrivateKeyJWT), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var doc struct {
				Methods    []string `json:"token_endpoint_auth_methods_supported"`
				Algorithms []string `json:"token_endpoint_auth_signing_alg_values_supported"`
				Documents  *bool    `json:"client_id_metadata_document_supported"`
			}
			pg := newRig(t, tt.change).person().get("/.well-known/oauth-authorization-server")
			if err := json.Unmarshal([]byte(pg.body), &doc); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(doc.Methods, tt.methods) || (doc.Documents != nil && *doc.Documents) != tt.documents {
				t.Errorf("got %s", pg.body)
			}
			signed := slices.Contains(tt.methods, oauth.PrivateKeyJWT)
			if (len(doc.Algorithms) > 0) != signed || slices.Contains(doc.Algorithms, "none") {
				t.Errorf("got the algorithms %v", doc.Algorithms)
			}
		})
	}
}

func TestHealth(t *testing.T) {
	r := newRig(t)
	p := r.person()
	if pg := p.get("/readyz"); pg.status != 200 {
		t.Errorf("got %d %s", pg.status, pg.body)
	}
	r.Drain()
	if pg := p.get("/readyz"); pg.status != 503 {
		t.Errorf("draining: got %d", pg.status)
	}
	if pg := p.get("/healthz"); pg.status != 200 {
		t.Errorf("healthz: got %d", pg.status)
	}
	p.login(authorizeQuery())
	form := p.get("/authorize?" + authorizeQuery("prompt", "login").Encode())
	r.store.Close()
	r.advance(time.Minute) // all cached data of the store is too old
	for name, get := range map[string]func() page{
		"token":   func() page { return p.post("/token", refreshForm("x")) },
		"page":    func() page { return p.get("/authorize?" + authorizeQuery().Encode()) },
		"unknown": func() page { return p.get("/authorize?" + authorizeQuery("client_id", "x").Encode()) },
		"unknown JSON": func() page {
			return p.get("/authorize?"+authorizeQuery("client_id", "x").Encode(), "Accept", "application/json")
		},
		"login": func() page {
			return p.post("/login",
				url.Values{"step": {form.step(t)}, "username": {"alice"}, "password": {"correct horse battery"}})
		},
	} {
		if pg := get(); pg.status != 503 || pg.header.Get("Retry-After") == "" {
			t.Errorf("without a store: %s: got %d %.300s, want 503 with Retry-After", name, pg.status, pg.body)
		}
	}
}
