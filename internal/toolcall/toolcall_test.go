package toolcall

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/signin"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestWhereTheTokenGoes: CL-25 CL-26. The token is in the header of every request to the MCP
// server, and is never sent elsewhere, even if that server redirects.
func TestWhereTheTokenGoes(t *testing.T) {
	const token = "the-access-token"
	var mu sync.Mutex // guards the lists below
	var own, foreign []*http.Request
	note := func(list *[]*http.Request, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		*list = append(*list, r)
	}
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { note(&foreign, r) }))
	t.Cleanup(other.Close)
	server := mcp.NewServer(&mcp.Implementation{Name: "t", Version: "1"}, nil)
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		note(&own, r)
		if r.URL.Path == "/away" {
			http.Redirect(w, r, other.URL+"/mcp", http.StatusTemporaryRedirect)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	t.Run("CL-25 in the header, never in the URL", func(t *testing.T) {
		if _, err := tools(t, s.URL+"/mcp", token, Call{}); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(own) < 2 {
			t.Fatalf("got %d requests", len(own))
		}
		for _, r := range own {
			if r.Header.Get("Authorization") != "Bearer "+token || strings.Contains(r.URL.String(), token) {
				t.Errorf("%s %s: got %q", r.Method, r.URL, r.Header.Get("Authorization"))
			}
		}
	})
	t.Run("CL-26 not to another server", func(t *testing.T) {
		if _, err := tools(t, s.URL+"/away", token, Call{}); err == nil {
			t.Error("got nil, want an error")
		}
		mu.Lock()
		defer mu.Unlock()
		for _, r := range foreign {
			t.Errorf("%s %s has %q", r.Method, r.URL, r.Header.Get("Authorization"))
		}
	})
}

// TestEras checks that the client follows the revision of a server with sessions, and of one of
// 2026-07-28.
func TestEras(t *testing.T) {
	for _, tt := range []struct {
		name      string
		stateless bool
		version   string
	}{
		{"CL-32 CL-33 CL-36 a server of sessions, after the newer revision was tried", false, "2025-11-25"},
		{"CL-32 CL-33 CL-36 a server of 2026-07-28", true, "2026-07-28"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var mu sync.Mutex // guards posts
			var posts []http.Header
			server := mcp.NewServer(&mcp.Implementation{Name: "t", Version: "1"}, nil)
			server.AddTool(&mcp.Tool{Name: "x", InputSchema: json.RawMessage(`{"type":"object"}`)},
				func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					return &mcp.CallToolResult{}, nil
				})
			h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
				&mcp.StreamableHTTPOptions{Stateless: tt.stateless})
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					mu.Lock()
					posts = append(posts, r.Header)
					mu.Unlock()
				}
				h.ServeHTTP(w, r)
			}))
			t.Cleanup(s.Close)
			if out, err := tools(t, s.URL+"/mcp", "t", Call{Tool: "x"}); err != nil ||
				len(out.Names) != 1 {
				t.Fatalf("got %v, %v", out, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if got := posts[0].Get("Mcp-Protocol-Version"); got != "2026-07-28" {
				t.Errorf("CL-36: the first request is of %q", got)
			}
			if got := posts[len(posts)-1].Get("Mcp-Protocol-Version"); got != tt.version {
				t.Errorf("CL-33: the last request is of %q, want %s", got, tt.version)
			}
			for _, h := range posts {
				if accept := h.Get("Accept"); !strings.Contains(accept, "application/json") ||
					!strings.Contains(accept, "text/event-stream") {
					t.Errorf("CL-32: got %q", accept)
				}
			}
		})
	}
}

func tools(t *testing.T, mcpURL, token string, call Call) (Tools, error) {
	t.Helper()
	present := signin.New().Present(oauth.TokenResponse{AccessToken: token, TokenType: "Bearer"})
	return Make(t.Context(), mcpURL, present, call)
}
