package assembly

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin/api"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// local sends a request to a server as a client on this machine does.
func local(t *testing.T, h http.Handler, token, method, path string, body any) *httptest.ResponseRecorder {
	t.Helper()
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	r, w := httptest.NewRequest(method, path, strings.NewReader(string(text))), httptest.NewRecorder()
	r.Host = "localhost:8414"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("MCP-Protocol-Version", "2025-06-18")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	h.ServeHTTP(w, r)
	return w
}

// calling returns a call of a tool.
func calling(tool string) any {
	return map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
		"params": map[string]any{"name": tool, "arguments": map[string]any{}}}
}

// echo starts an MCP server that returns its name and the name of the called tool.
func echo(t *testing.T, name string) (at string, called *atomic.Int32) {
	t.Helper()
	called = new(atomic.Int32)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		called.Add(1)
		var call struct{ Params struct{ Name string } }
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &call); err != nil || r.Header.Get("Authorization") != "" {
			http.Error(w, "no call, or with a token", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"%s did %s"}]}}`,
			name, call.Params.Name)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/mcp", called
}

// TestStoredUpstream checks that an MCP server that is added through the API is behind the gateway
// on every running replica, with its scopes and tool rules, that a change moves it, and that its
// removal ends it.
func TestStoredUpstream(t *testing.T) {
	t.Parallel()
	const uri, path = "http://localhost:8414/notes", "/notes"
	s, clock, _ := twoReplicas(t, nil)
	other, err := s.parts.Server(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	replicas := map[string]http.Handler{"one": s.Handler(), "other": other.Handler()}
	one := replicas["one"]
	later := func() { clock.by.Add(int64(3 * time.Second)) } // resources are read again

	first, calls := echo(t, "first")
	second, _ := echo(t, "second")
	writer := robot(t, s, s.Auth.Issuer()+apiPath, api.ScopeRead, api.ScopeWrite)
	made := local(t, one, writer, "POST", "/api/v1/resources", map[string]any{
		"uri": uri, "upstream": first,
		"scopes":     []storage.ScopeText{{Name: "read", EveryCall: true}, {Name: "write"}},
		"tool_rules": []storage.ToolRule{{Name: "add_*", Scopes: []string{"write"}}, {Name: "drop", Deny: true}},
	})
	if made.Code != http.StatusCreated && made.Code != http.StatusOK {
		t.Fatalf("adding it: %d %s", made.Code, made.Body)
	}
	later()
	reader, adder := robot(t, s, uri, "read"), robot(t, s, uri, "read", "write")
	for name, h := range replicas {
		for _, c := range []struct {
			token, tool string
			want        int
			has         string
		}{
			{"", "get", 401, ""},
			{writer, "get", 401, ""}, // a token for the API
			{reader, "get", 200, "first did get"},
			{reader, "add_note", 403, "write"},
			{adder, "add_note", 200, "first did add_note"},
			{adder, "drop", 403, ""},
		} {
			before := calls.Load()
			w := local(t, h, c.token, "POST", path, calling(c.tool))
			passed := calls.Load() > before
			if w.Code != c.want || !strings.Contains(w.Body.String()+w.Header().Get("WWW-Authenticate"), c.has) ||
				passed != (c.want == 200) {
				t.Errorf("%s: %s: got %d %s, passed %v; want %d %q", name, c.tool, w.Code, w.Body, passed, c.want, c.has)
			}
		}
		described := local(t, h, "", "GET", "/.well-known/oauth-protected-resource"+path, nil)
		if described.Code != 200 || !strings.Contains(described.Body.String(), `"`+uri+`"`) {
			t.Errorf("%s: its metadata: %d %s", name, described.Code, described.Body)
		}
	}

	change := func(in map[string]any) {
		t.Helper()
		w := local(t, one, writer, "PATCH", "/api/v1/resources/"+url.PathEscape(uri), in)
		if w.Code != http.StatusOK {
			t.Fatalf("%v: %d %s", in, w.Code, w.Body)
		}
		later()
	}
	change(map[string]any{"upstream": second, "tool_rules": []storage.ToolRule{}})
	for name, h := range replicas {
		if w := local(t, h, reader, "POST", path, calling("drop")); w.Code != 200 ||
			!strings.Contains(w.Body.String(), "second did drop") {
			t.Errorf("%s: moved, and without rules: %d %s", name, w.Code, w.Body)
		}
	}
	change(map[string]any{"upstream": "none"})
	for name, h := range replicas {
		if w := local(t, h, reader, "POST", path, calling("get")); w.Code != 404 {
			t.Errorf("%s: taken from the gateway: %d %s", name, w.Code, w.Body)
		}
	}
	change(map[string]any{"upstream": first})
	if w := local(t, one, reader, "POST", path, calling("get")); w.Code != 200 {
		t.Errorf("behind it again: %d %s", w.Code, w.Body)
	}
	if w := local(t, one, writer, "DELETE", "/api/v1/resources/"+url.PathEscape(uri), nil); w.Code != http.StatusOK {
		t.Fatalf("removing it: %d %s", w.Code, w.Body)
	}
	later()
	for name, h := range replicas {
		before := calls.Load()
		if w := local(t, h, reader, "POST", path, calling("get")); w.Code != 404 {
			t.Errorf("%s: removed: %d %s", name, w.Code, w.Body)
		}
		if w := local(t, h, "", "GET", "/.well-known/oauth-protected-resource"+path, nil); w.Code != 404 {
			t.Errorf("%s: removed: its metadata: %d %s", name, w.Code, w.Body)
		}
		if calls.Load() != before {
			t.Errorf("%s: a removed MCP server is called", name)
		}
	}
}

// TestStoredUpstreamIsMaintained checks that Run maintains an MCP server that is added later, and
// that /readyz shows it.
func TestStoredUpstreamIsMaintained(t *testing.T) {
	s := measured(t)
	at, _ := echo(t, "it")
	const uri = "http://localhost:8414/notes"
	if err := s.parts.Store.AddResource(t.Context(), storage.Resource{
		URI: uri, Name: "Notes", Scopes: []storage.ScopeText{{Name: "mcp", Default: true}}, Upstream: at,
	}); err != nil {
		t.Fatal(err)
	}
	s.stored.run(t.Context())
	wait.Until(t, "it is up", func() bool {
		return strings.Contains(ask(s.Management(), "GET", "/readyz").Body.String(), `{"`+uri+`":"up"}`)
	})
	s.stored.mu.Lock()
	defer s.stored.mu.Unlock()
	if site := s.stored.live[uri]; site == nil || site.end == nil {
		t.Error("it is not maintained")
	}
}

// TestStoredUpstreamThatCannotBe checks that no stored MCP server replaces a path of this server, a
// configured MCP server, or gets requests for another host, whatever is in the database.
func TestStoredUpstreamThatCannotBe(t *testing.T) {
	at, called := echo(t, "it")
	fixed, _ := echo(t, "configured")
	s := consoled(t, func(c *config.Loaded) {
		c.Resources = []config.Resource{{
			URI: "http://localhost:8414/fixed", Scopes: []storage.ScopeText{{Name: "mcp", Default: true}},
			Upstream: config.Upstream{URL: fixed},
		}}
	})
	for _, uri := range []string{
		"http://localhost:8414/token", "http://localhost:8414/fixed", "http://localhost:8414/api/v1/users",
		"http://elsewhere.example/mcp", "http://localhost:8414/mcp/admin",
	} {
		if err := s.parts.Store.AddResource(t.Context(), storage.Resource{
			URI: uri, Name: "x", Scopes: []storage.ScopeText{{Name: "mcp", Default: true}}, Upstream: at,
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.stored.update(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(s.stored.live) != 0 || len(s.stored.failed) != 4 {
		t.Errorf("served: %v; failed: %v", s.stored.live, s.stored.failed)
	}
	for _, path := range []string{"/token", "/api/v1/users", "/mcp/admin"} {
		if w := local(t, s.Handler(), "", "POST", path, calling("get")); strings.Contains(w.Body.String(), "did") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	token := robot(t, s, "http://localhost:8414/fixed", "mcp")
	if w := local(t, s.Handler(), token, "POST", "/fixed", calling("get")); w.Code != 200 ||
		!strings.Contains(w.Body.String(), "configured did get") {
		t.Errorf("the configured one: %d %s", w.Code, w.Body)
	}
	if called.Load() != 0 {
		t.Error("the MCP server of the database was called")
	}
}

// TestStoredUpstreamAddresses checks that the gateway connects to no forbidden address, even if the
// name of the MCP server is resolved to it later, and not to its own management listener.
func TestStoredUpstreamAddresses(t *testing.T) {
	p := Parts{Config: &config.Loaded{Config: &config.Config{}}}
	for _, c := range []struct {
		management, address string
		want                bool
	}{
		{"127.0.0.1:9414", "127.0.0.1:3000", true},
		{"127.0.0.1:9414", "10.0.0.7:9414", true},
		{"127.0.0.1:9414", "127.0.0.1:9414", false},
		{"127.0.0.1:9414", "[::1]:9414", false},
		{"127.0.0.1:9414", "0.0.0.0:9414", false},
		{"127.0.0.1:9414", "[::ffff:127.0.0.1]:9414", false},
		{"127.0.0.1:9414", "169.254.169.254:80", false},
		{"127.0.0.1:9414", "x", false},
		{"localhost:9414", "10.0.0.7:9414", true},
		{":9414", "10.0.0.7:9414", false}, // may be this machine, or another replica
		{":9414", "10.0.0.7:3000", true},
		{"10.0.0.7:9414", "10.0.0.7:9414", false},
		{"", "127.0.0.1:3000", true},
	} {
		p.Config.Management.Listen = c.management
		network := "tcp4"
		if strings.HasPrefix(c.address, "[") {
			network = "tcp6"
		}
		if err := p.permits(network, c.address, nil); (err == nil) != c.want {
			t.Errorf("%s with a management listener at %q: %v", c.address, c.management, err)
		}
	}
	s := measured(t)
	if err := s.parts.Store.AddResource(t.Context(), storage.Resource{
		URI: "http://localhost:8414/meta", Name: "x", Upstream: "http://169.254.169.254/latest",
		Scopes: []storage.ScopeText{{Name: "mcp", Default: true}},
	}); err != nil {
		t.Fatal(err)
	}
	s, err := s.parts.Server(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	err = s.stored.live["http://localhost:8414/meta"].Server.Check(t.Context())
	if err == nil || !strings.Contains(err.Error(), "address refused") {
		t.Errorf("its health: %v", err)
	}
	token := robot(t, s, "http://localhost:8414/meta", "mcp")
	w := local(t, s.Handler(), token, "POST", "/meta", calling("get"))
	if w.Code != http.StatusBadGateway && w.Code != http.StatusServiceUnavailable {
		t.Errorf("a call: %d %s", w.Code, w.Body)
	}
}

// TestStoredUpstreamKeepsProofs checks that a proof is used up also for the guard that a later change
// of its MCP server creates (RFC 9449 §11.1).
func TestStoredUpstreamKeepsProofs(t *testing.T) {
	s := measured(t)
	for i, want := range []bool{true, false} {
		c, err := s.stored.p.guardConfig(s.Auth, &config.Resource{URI: "http://localhost:8414/x"}, false, s.stored.all)
		if err != nil {
			t.Fatal(err)
		}
		first, err := c.DPoP.Replays.Use(t.Context(), "proof", time.Now().Add(time.Minute))
		if err != nil || first != want {
			t.Errorf("guard %d: the proof is new: %t, %v", i, first, err)
		}
	}
}
