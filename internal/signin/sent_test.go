package signin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	protocol "github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/metadata"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestSent checks the requests of the client.
func TestSent(t *testing.T) {
	w := newWorld(t, nil)
	if err := signIn(t, w, w.URL+"/mcp"); err != nil {
		t.Fatal(err)
	}
	t.Run("CL-07 MCP 2025-03-26: discovery names the protocol version", func(t *testing.T) {
		for _, path := range []string{
			"/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server",
		} {
			if got := w.last(t, path).header.Get("MCP-Protocol-Version"); got != protocol.Rev20260728 {
				t.Errorf("%s: got %q, want %q", path, got, protocol.Rev20260728)
			}
		}
	})
	var registered struct {
		RedirectURIs    []string `json:"redirect_uris"`
		GrantTypes      []string `json:"grant_types"`
		ApplicationType string   `json:"application_type"`
	}
	if err := json.Unmarshal([]byte(w.last(t, "/register").body), &registered); err != nil {
		t.Fatal(err)
	}
	t.Run("CL-13 it registers as a native application", func(t *testing.T) {
		if registered.ApplicationType != "native" {
			t.Errorf("got %+v", registered)
		}
	})
	t.Run("CL-14 it registers for refresh tokens, and does without one", func(t *testing.T) {
		if !slices.Contains(registered.GrantTypes, "refresh_token") {
			t.Errorf("got %+v", registered)
		}
	})
	t.Run("CL-16 the redirect URI is on loopback, and the registered one", func(t *testing.T) {
		u, err := url.Parse(registered.RedirectURIs[0])
		if err != nil || u.Scheme != "http" || u.Hostname() != "127.0.0.1" {
			t.Errorf("got %v, %v", u, err)
		}
		token, err := url.ParseQuery(w.last(t, "/token").body)
		if err != nil || token.Get("redirect_uri") != registered.RedirectURIs[0] {
			t.Errorf("got %v, want %v", token, registered.RedirectURIs)
		}
		for _, q := range w.requests { // authorize and token
			if got := q.Get("redirect_uri"); got != registered.RedirectURIs[0] {
				t.Errorf("got %q, want %v", got, registered.RedirectURIs)
			}
		}
	})
	t.Run("RS-13 CL-02 a pointer to a document anywhere else", func(t *testing.T) {
		elsewhere := newWorld(t, func(w *world) {
			w.challenge = `Bearer resource_metadata="` + w.URL + `/open/prm.json"`
			w.opened = func(rw http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(rw).Encode(w.prm) }
		})
		if err := signIn(t, elsewhere, elsewhere.URL+"/mcp"); err != nil {
			t.Error(err)
		}
	})
}

// TestHowItAuthenticates: CL-28. The client uses an authentication method that the authorization
// server lists.
func TestHowItAuthenticates(t *testing.T) {
	for _, tt := range []struct {
		name, secret string
		methods      metadata.Values
		header, body bool
	}{
		{"CL-28 none for a public client", "", metadata.Values{"none", "client_secret_post"}, false, false},
		{"CL-28 client_secret_post", "s+1", metadata.Values{"client_secret_post", "client_secret_basic"}, false, true},
		{"CL-28 client_secret_basic", "s+1", metadata.Values{"client_secret_basic"}, true, false},
		{"CL-28 RFC 8414 2: client_secret_basic if nothing is listed", "s+1", nil, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, nil)
			var s Server
			s.TokenEndpoint, s.TokenAuthMethods = w.URL+"/token", tt.methods
			if _, err := New().Token(t.Context(), s, Credentials{"c1", tt.secret}, Request{}, "http://127.0.0.1/cb",
				w.URL+"/mcp", "code1"); err != nil {
				t.Fatal(err)
			}
			got := w.last(t, "/token")
			form, err := url.ParseQuery(got.body)
			if err != nil || form.Get("client_id") != "c1" || form.Has("client_secret") != tt.body ||
				tt.body && form.Get("client_secret") != tt.secret {
				t.Errorf("the form is %v, %v", form, err)
			}
			r := http.Request{Header: got.header}
			if _, secret, ok := r.BasicAuth(); ok != tt.header || ok && secret != url.QueryEscape(tt.secret) {
				t.Errorf("the header is %q", got.header.Get("Authorization"))
			}
		})
	}
}

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
	c := New()
	return c.Tools(t.Context(), mcpURL, c.Present(oauth.TokenResponse{AccessToken: token, TokenType: "Bearer"}), call)
}

// TestBound: CL-30. With a key, the token request has a proof, and a token that is not bound is
// refused.
func TestBound(t *testing.T) {
	w := newWorld(t, nil)
	var s Server
	s.TokenEndpoint = w.URL + "/token"
	kind := "DPoP"
	w.token = func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("DPoP") == "" {
			t.Error("CL-30: no proof")
		}
		fmt.Fprintf(rw, `{"access_token":"t","token_type":%q,"expires_in":60}`, kind)
	}
	c, err := NewBound()
	if err != nil {
		t.Fatal(err)
	}
	s.AuthorizationEndpoint = w.URL + "/authorize"
	for _, tt := range []struct {
		client *Client
		want   string
	}{{c, c.key}, {New(), ""}} {
		r, err := tt.client.Authorize(s, Credentials{ID: "c1"}, "http://127.0.0.1/cb", w.URL+"/mcp", nil, Proof{})
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(r.URL)
		if err != nil || u.Query().Get("dpop_jkt") != tt.want || u.Query().Has("dpop_jkt") != (tt.want != "") {
			t.Errorf("AS-215: dpop_jkt: got %v, %v, want %q", u, err, tt.want)
		}
	}
	get := func() (oauth.TokenResponse, error) {
		return c.Token(t.Context(), s, Credentials{ID: "c1"}, Request{}, "http://127.0.0.1/cb", w.URL+"/mcp", "code1")
	}
	token, err := get()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = c.Tools(t.Context(), w.URL+"/mcp", c.Present(token), Call{}) // the MCP server refuses every request
	if h := w.last(t, "/mcp").header; h.Get("Authorization") != "DPoP t" || h.Get("DPoP") == "" {
		t.Errorf("CL-30: got %v", h)
	}
	kind = "Bearer"
	if _, err := get(); err == nil || !strings.Contains(err.Error(), "not bound") {
		t.Errorf("got %v", err)
	}
}
