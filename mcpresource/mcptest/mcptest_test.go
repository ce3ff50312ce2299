package mcptest_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/mcptest"
)

// config is the configuration of a server with a tool that needs another scope.
func config() mcpresource.Config {
	return mcpresource.Config{Policy: &mcpresource.Rules{
		Base: []string{"notes:read"}, Tools: map[string][]string{"add_note": {"notes:write"}},
	}}
}

// whoami is an MCP server that answers with its caller.
func whoami(w http.ResponseWriter, r *http.Request) {
	p, ok := mcpresource.FromContext(r.Context())
	if !ok {
		_, _ = io.WriteString(w, "nobody")
		return
	}
	_, _ = io.WriteString(w, p.Subject+" by "+p.ClientID+" with "+p.Scopes.String())
}

func serve(t *testing.T, c mcpresource.Config) *mcptest.Server {
	t.Helper()
	return mcptest.Serve(t, c, func(g *mcpresource.Guard) http.Handler { return g.Handler(http.HandlerFunc(whoami)) })
}

// call calls a tool, and returns the status, the body and the challenge.
func call(t *testing.T, c *http.Client, url, tool string) (status int, body, challenge string) {
	t.Helper()
	resp, err := c.Post(url, "application/json",
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`"}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b), resp.Header.Get("WWW-Authenticate")
}

func want(t *testing.T, c *http.Client, url string, status int) {
	t.Helper()
	if got, body, _ := call(t, c, url, "list_notes"); got != status {
		t.Errorf("got %d %s, want %d", got, body, status)
	}
}

// AU-03: a server's author tests tools, scopes and sign-in.
func TestServe(t *testing.T) {
	srv := serve(t, config())
	t.Run("a tool knows its caller", func(t *testing.T) {
		status, body, _ := call(t, srv.Client("alice", "notes:read"), srv.URL, "list_notes")
		if status != http.StatusOK || body != "alice by mcptest with notes:read" {
			t.Errorf("got %d %s", status, body)
		}
	})
	t.Run("no token", func(t *testing.T) {
		status, _, challenge := call(t, http.DefaultClient, srv.URL, "list_notes")
		if status != http.StatusUnauthorized || !strings.Contains(challenge, srv.Guard.MetadataURL()) {
			t.Errorf("got %d %s", status, challenge)
		}
	})
	t.Run("a missing scope", func(t *testing.T) {
		alice := srv.Client("alice", "notes:read")
		status, _, challenge := call(t, alice, srv.URL, "add_note")
		if status != http.StatusForbidden || !strings.Contains(challenge, `scope="notes:read notes:write"`) {
			t.Errorf("got %d %s", status, challenge)
		}
		status, _, _ = call(t, srv.Client("alice", "notes:read", "notes:write"), srv.URL, "add_note")
		if status != http.StatusOK {
			t.Errorf("with the scope: got %d", status)
		}
	})
	t.Run("a token for another server", func(t *testing.T) {
		token := srv.Issuer.Token("https://other.example.com/mcp", "alice", "notes:read")
		want(t, mcptest.Client(token), srv.URL, http.StatusUnauthorized)
	})
	t.Run("a token of another issuer", func(t *testing.T) {
		other := mcptest.NewIssuer(t)
		want(t, mcptest.Client(other.Token(srv.URL, "alice", "notes:read")), srv.URL, http.StatusUnauthorized)
	})
	t.Run("a revoked token, and the tokens of others", func(t *testing.T) {
		alice, bob := srv.Client("alice", "notes:read"), srv.Client("bob", "notes:read")
		want(t, alice, srv.URL, http.StatusOK)
		srv.Issuer.Revoke("alice")
		want(t, alice, srv.URL, http.StatusUnauthorized)
		want(t, bob, srv.URL, http.StatusOK)
		want(t, srv.Client("alice", "notes:read"), srv.URL, http.StatusOK)
	})
	t.Run("a withdrawn key", func(t *testing.T) {
		before := srv.Client("alice", "notes:read")
		want(t, before, srv.URL, http.StatusOK)
		srv.Issuer.Rotate()
		want(t, before, srv.URL, http.StatusUnauthorized)
		want(t, srv.Client("alice", "notes:read"), srv.URL, http.StatusOK)
	})
	t.Run("an expired token", func(t *testing.T) {
		alice := srv.Client("alice", "notes:read")
		srv.Issuer.Advance(50 * time.Minute)
		want(t, alice, srv.URL, http.StatusOK)
		srv.Issuer.Advance(time.Hour)
		want(t, alice, srv.URL, http.StatusUnauthorized)
		want(t, srv.Client("alice", "notes:read"), srv.URL, http.StatusOK)
	})
	t.Run("other claims", func(t *testing.T) {
		claims := map[string]any{"aud": srv.URL, "sub": "alice", "scope": "notes:read", "client_id": "editor"}
		_, body, _ := call(t, mcptest.Client(srv.Issuer.Sign(claims)), srv.URL, "list_notes")
		if body != "alice by editor with notes:read" {
			t.Errorf("got %s", body)
		}
		claims["exp"] = nil
		want(t, mcptest.Client(srv.Issuer.Sign(claims)), srv.URL, http.StatusUnauthorized)
	})
}

// The test server keeps the paths of a configuration, and not its host.
func TestServeAt(t *testing.T) {
	c := config()
	c.Resource = "https://notes.example.com/notes/mcp"
	c.Aliases = []string{"https://notes.example.com/notes/mcp@work"}
	srv := serve(t, c)
	if !strings.HasPrefix(srv.URL, "http://127.0.0.1:") || !strings.HasSuffix(srv.URL, "/notes/mcp") {
		t.Errorf("got %s", srv.URL)
	}
	alice := srv.Client("alice", "notes:read")
	want(t, alice, srv.URL, http.StatusOK)
	want(t, alice, srv.URL+"@work", http.StatusUnauthorized)
	want(t, mcptest.Client(srv.Issuer.Token(srv.URL+"@work", "alice", "notes:read")), srv.URL+"@work", http.StatusOK)
}

// A server in another process finds everything by the issuer's URL.
func TestIssuerElsewhere(t *testing.T) {
	i := mcptest.NewIssuer(t)
	const resource = "https://notes.example.com/mcp"
	discovered, err := mcpresource.Discover(t.Context(), i.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	asking, err := mcpresource.NewIntrospectionValidator(mcpresource.IntrospectionConfig{
		Issuer: i.URL, ClientID: "notes", ClientSecret: "any", CacheTTL: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	alice := i.Token(resource, "alice", "notes:read")
	for name, v := range map[string]mcpresource.Validator{"keys": discovered, "introspection": asking} {
		p, err := v.Validate(t.Context(), mcpresource.Credential{Scheme: "Bearer", Token: alice})
		if err != nil || p.Subject != "alice" || p.Audience[0] != resource || p.Scopes.String() != "notes:read" {
			t.Errorf("%s: got %+v, %v", name, p, err)
		}
	}
	inactive := func(token, why string) {
		t.Helper()
		if p, err := asking.Validate(t.Context(), mcpresource.Credential{Token: token}); err == nil {
			t.Errorf("%s: got %+v", why, p)
		}
	}
	inactive("none", "no token")
	i.Revoke("alice")
	inactive(alice, "a revoked token")
	fresh, err := mcpresource.NewJWTValidator(mcpresource.JWTConfig{Issuer: i.URL, RequireStatus: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fresh.Validate(t.Context(), mcpresource.Credential{Token: alice}); err == nil ||
		!strings.Contains(err.Error(), "revoked") {
		t.Errorf("by the status list: got %v", err)
	}
	bob := i.Token(resource, "bob")
	i.Advance(time.Hour)
	inactive(bob, "an expired token")
	bob = i.Token(resource, "bob")
	i.Rotate()
	inactive(bob, "a token by a withdrawn key")
}

func TestRequest(t *testing.T) {
	for want, p := range map[string]*mcpresource.Principal{
		"nobody": nil,
		"alice by mcptest with notes:read notes:write": mcptest.Principal("alice", "notes:read", "notes:write"),
	} {
		w := httptest.NewRecorder()
		r := mcptest.Request(p, "add_note", map[string]string{"text": "milk"})
		whoami(w, r)
		body, err := io.ReadAll(r.Body)
		if got := w.Body.String(); got != want || err != nil ||
			!strings.Contains(string(body), `"arguments":{"text":"milk"}`) {
			t.Errorf("got %s of %s, %v; want %s", got, body, err, want)
		}
	}
	if a, b := mcptest.Principal("alice"), mcptest.Principal("bob"); a.Person() == b.Person() ||
		a.Person() != mcptest.Principal("alice", "x").Person() {
		t.Errorf("got %q and %q", a.Person(), b.Person())
	}
	if p, ok := mcpresource.FromContext(context.Background()); ok {
		t.Errorf("got %+v", p)
	}
}
