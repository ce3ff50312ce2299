package assembly

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/dcr"
	"github.com/mcp-authd/mcp-authd/internal/admin/api"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// robot adds a client for an administrator, and returns its token.
func robot(t *testing.T, s *Server, resource string, scopes ...string) string {
	t.Helper()
	client, secret, err := MintClient(dcr.Spec{
		Name: "Robot", GrantTypes: []string{oauth.GrantClientCredentials}, Scopes: scopes,
		Resources: []string{resource}, Redirects: s.parts.Config.RedirectPolicy(), Now: time.Now(),
	}, "")
	if err == nil {
		err = s.parts.Store.PutClient(t.Context(), client)
	}
	if err != nil {
		t.Fatal(err)
	}
	form := url.Values{"grant_type": {oauth.GrantClientCredentials}}
	r, w := httptest.NewRequest(http.MethodPost, "/token", strings.NewReader(form.Encode())), httptest.NewRecorder()
	r.Host = "localhost:8414"
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(client.ID, secret)
	s.Handler().ServeHTTP(w, r)
	var reply struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil || reply.AccessToken == "" {
		t.Fatalf("no token: %d %s", w.Code, w.Body)
	}
	return reply.AccessToken
}

// TestAPI checks that the API is at the issuer, accepts tokens of this server, and is in no list of
// MCP servers (OB-10).
func TestAPI(t *testing.T) {
	s := measured(t)
	call := func(token, method, path string) int {
		r, w := httptest.NewRequest(method, path, nil), httptest.NewRecorder()
		r.Host = "localhost:8414"
		r.Header.Set("Authorization", "Bearer "+token)
		s.Handler().ServeHTTP(w, r)
		return w.Code
	}
	if _, err := s.parts.Store.User(t.Context(), "x"); err == nil {
		t.Fatal("there is a user already")
	}
	if _, err := s.Auth.Users().Create(t.Context(), "alice", "correct horse battery", false); err != nil {
		t.Fatal(err)
	}
	root := s.Auth.Issuer() + apiPath
	writer, reader := robot(t, s, root, api.ScopeRead, api.ScopeWrite), robot(t, s, root, api.ScopeRead)
	for _, c := range []struct {
		token, method, path string
		want                int
	}{
		{writer, "GET", "/api/v1/users", 200},
		{writer, "POST", "/api/v1/users/alice/disable", 200},
		{reader, "GET", "/api/v1/users/alice", 200},
		{reader, "POST", "/api/v1/users/alice/enable", 403},
		{"", "GET", "/api/v1/users", 401},
		{"", "GET", "/api/v1/openapi.json", 200},
		{"", "GET", "/.well-known/oauth-protected-resource/api/v1", 200},
		{writer, "DELETE", "/api/v1/users//links", 404}, // no redirect to another object (security review A-L8)
		{writer, "GET", "/api/v1/users/../users", 404},
		{writer, "POST", "//api/v1/users/alice/disable", 404},
	} {
		if got := call(c.token, c.method, c.path); got != c.want {
			t.Errorf("%s %s: got %d, want %d", c.method, c.path, got, c.want)
		}
	}
	for _, path := range []string{"/.well-known/oauth-authorization-server", "/"} {
		if body := ask(s.Handler(), http.MethodGet, path).Body.String(); strings.Contains(body, apiPath) ||
			strings.Contains(body, api.ScopeRead) {
			t.Errorf("%s names the API: %s", path, body)
		}
	}
	off := measured(t, "MCP_AUTHD_API_ENABLED=false")
	if got := ask(off.Handler(), http.MethodGet, "/api/v1/users").Code; got != 404 {
		t.Errorf("api.enabled false: got %d, want 404", got)
	}
}

// TestAdminMCP checks that the admin MCP server is at the issuer, has its own resource, and can be
// turned off (OB-11).
func TestAdminMCP(t *testing.T) {
	s := measured(t)
	h := s.Handler()
	metadata := ask(h, http.MethodGet, "/.well-known/oauth-protected-resource"+mcpPath)
	if body := metadata.Body.String(); metadata.Code != 200 || !strings.Contains(body, s.Auth.Issuer()+mcpPath) ||
		!strings.Contains(body, api.ScopeRead) || strings.Contains(body, api.ScopeWrite) {
		t.Errorf("OB-11: the metadata: %d %s", metadata.Code, body)
	}
	call := func(token string) int {
		const list = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
			`"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
		r, w := httptest.NewRequest(http.MethodPost, mcpPath, strings.NewReader(list)), httptest.NewRecorder()
		r.Host = "localhost:8414"
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Authorization", "Bearer "+token)
		h.ServeHTTP(w, r)
		return w.Code
	}
	reader := robot(t, s, s.Auth.Issuer()+mcpPath, api.ScopeRead)
	if got := call(reader); got != 200 {
		t.Errorf("OB-11: a program that reads: got %d, want 200", got)
	}
	if got := call(robot(t, s, s.Auth.Issuer()+apiPath, api.ScopeRead)); got != 401 {
		t.Errorf("OB-11: a token for the API: got %d, want 401", got)
	}
	for _, off := range []string{"MCP_AUTHD_API_MCP=false", "MCP_AUTHD_API_ENABLED=false"} {
		if got := ask(measured(t, off).Handler(), http.MethodPost, mcpPath).Code; got != 404 {
			t.Errorf("OB-11: %s: got %d, want 404", off, got)
		}
	}
}
