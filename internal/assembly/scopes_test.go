package assembly

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// namedScopes is an authorization server whose tokens are their scopes.
type namedScopes struct{ someIssuer }

func (namedScopes) Introspect(_ context.Context, token string) (oauth.Introspection, error) {
	now := time.Now()
	return oauth.Introspection{
		Active: true, Issuer: "https://auth.example.com", Subject: "alice", ClientID: "app",
		Scope:    map[string]string{"read": "notes", "write": "notes:write", "both": "notes notes:write"}[token],
		Audience: "https://mcp.example.com/mcp", IssuedAt: now.Unix(), Expires: now.Add(time.Hour).Unix(),
	}, nil
}

// TestScopesOfUpstream checks that challenge and metadata name the scopes of the first sign-in, and
// that every call needs the marked scopes (RU-17). The challenge to a call that needs more must
// also name its scopes.
func TestScopesOfUpstream(t *testing.T) {
	a := Parts{Log: slog.New(slog.DiscardHandler), Config: &config.Loaded{Config: &config.Config{}}}
	r := &config.Resource{
		URI: "https://mcp.example.com/mcp",
		Scopes: []storage.ScopeText{
			{Name: "notes", EveryCall: true}, {Name: "notes:write", Default: true}, {Name: "notes:share"},
		},
		Tools: []config.ToolRule{
			{Name: "add_*", Scopes: []string{"notes:write"}}, {Name: "share", Scopes: []string{"notes:share"}},
		},
	}
	c, err := a.guardConfig(namedScopes{}, r, false, commonOf(nil))
	if err != nil {
		t.Fatal(err)
	}
	c.Audit, c.Calls = nil, nil // require a complete server
	g, err := mcpresource.New(c)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	g.Register(mux, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	send := func(method, path, token, body string) *httptest.ResponseRecorder {
		req := httptest.NewRequest(method, "https://mcp.example.com"+path, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, req)
		return w
	}
	call := func(method, name string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"name":"` + name + `"}}`
	}
	for _, c := range []struct {
		name, token, body string
		status            int
		scope             string // in the challenge
	}{
		{"the first challenge", "", call("initialize", ""), 401, "notes notes:write"},
		{"a token without what may be left out connects", "read", call("initialize", ""), 200, ""},
		{"and lists", "read", call("tools/list", ""), 200, ""},
		{"and calls", "read", call("tools/call", "list_notes"), 200, ""},
		{"a tool names what it needs", "read", call("tools/call", "add_note"), 403, "notes notes:write"},
		{"and what is held", "both", call("tools/call", "share"), 403, "notes notes:share notes:write"},
		{"enough", "both", call("tools/call", "add_note"), 200, ""},
		{"without what every call needs", "write", call("initialize", ""), 403, "notes notes:write"},
	} {
		w := send(http.MethodPost, "/mcp", c.token, c.body)
		challenge := w.Header().Get("WWW-Authenticate")
		if w.Code != c.status || c.scope != "" && !strings.Contains(challenge, `scope="`+c.scope+`"`) {
			t.Errorf("RU-17 %s: got %d %s, want %d and %q", c.name, w.Code, challenge, c.status, c.scope)
		}
	}
	w := send(http.MethodGet, "/.well-known/oauth-protected-resource/mcp", "", "")
	if text, _ := io.ReadAll(w.Body); !strings.Contains(string(text), `"scopes_supported":["notes","notes:write"]`) {
		t.Errorf("RU-17 metadata: got %s", text)
	}
}
