package examples

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
)

// issuer is an authorization server that issues any token to anyone.
type issuer struct {
	*httptest.Server
	key      *ecdsa.PrivateKey
	resource string // resource of its tokens
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	i := &issuer{Server: httptest.NewServer(mux), key: key}
	t.Cleanup(i.Close)
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, i.URL, i.URL+"/jwks.json")
	})
	mux.HandleFunc("GET /jwks.json", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{
			Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Algorithm: "ES256", Use: "sig"}},
		})
	})
	return i
}

func (i *issuer) token(t *testing.T, subject, client, scope string) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: i.key},
		(&jose.SignerOptions{}).WithType("at+jwt").WithHeader("kid", "k"))
	if err != nil {
		t.Fatal(err)
	}
	claims, err := json.Marshal(map[string]any{
		"iss": i.URL, "sub": subject, "client_id": client, "aud": i.resource, "scope": scope, "jti": rand.Text(),
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(claims)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// bearer sends a token, which may change at any time.
type bearer struct{ token string }

func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

func open(t *testing.T, endpoint, version string, b *bearer) *mcp.ClientSession {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "examples", Version: "1"}, nil)
	s, err := c.Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: endpoint, HTTPClient: &http.Client{Transport: b}, MaxRetries: -1},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func callText(t *testing.T, s *mcp.ClientSession, tool string, args map[string]any) (string, error) {
	t.Helper()
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, c := range r.Content {
		if c, ok := c.(*mcp.TextContent); ok {
			text.WriteString(c.Text)
		}
	}
	return text.String(), nil
}

func names(t *testing.T, s *mcp.ClientSession) string {
	t.Helper()
	r, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, tool := range r.Tools {
		all = append(all, tool.Name)
	}
	return strings.Join(all, " ")
}

// versions has one revision of each era.
var versions = []string{"2025-11-25", "2026-07-28"}

// TestMCPGo tests a server of mcp-go behind the guard, in a separate module.
func TestMCPGo(t *testing.T) {
	as := newIssuer(t)
	address := nettest.For(t)
	endpoint := "http://" + address + "/mcp"
	as.resource = endpoint
	app := run(t, program.Build(t, "examples/mcp-go", "."), address, "-issuer", as.URL)
	for _, version := range versions {
		t.Run("RS-38 who calls is who sends this very request, "+version, func(t *testing.T) {
			b := &bearer{as.token(t, "alice", "editor", "notes:read notes:write")}
			s := open(t, endpoint, version, b)
			if got, err := callText(t, s, "whoami", nil); got != "alice by editor" {
				t.Errorf("got %q, %v", got, err)
			}
			if got, err := callText(t, s, "add_note",
				map[string]any{"text": "of alice " + version}); !strings.Contains(got, "of alice "+version) {
				t.Errorf("got %q, %v", got, err)
			}
			bob := open(t, endpoint, version, &bearer{as.token(t, "bob", "editor", "notes:read")})
			if got, err := callText(t, bob, "list_notes", nil); err != nil || got != "" {
				t.Errorf("bob: got %q, %v", got, err)
			}
		})
		t.Run("RS-53 RS-54 lists are those of the token of the request, "+version, func(t *testing.T) {
			b := &bearer{as.token(t, "alice", "editor", "notes:read notes:write")}
			s := open(t, endpoint, version, b)
			if got := names(t, s); got != "add_note list_notes whoami" {
				t.Errorf("got %q", got)
			}
			b.token = as.token(t, "alice", "editor", "notes:read") // the same caller with fewer scopes
			if got := names(t, s); got != "list_notes whoami" {
				t.Errorf("with less scope: got %q", got)
			}
		})
	}
	t.Run("RS-28 RS-29 a call beyond the scope is 403 and says what it needs", func(t *testing.T) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint,
			strings.NewReader(
				`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add_note","arguments":{"text":"x"}}}`,
			))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+as.token(t, "alice", "editor", "notes:read"))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := resp.Header.Get("WWW-Authenticate"); resp.StatusCode != http.StatusForbidden ||
			!strings.Contains(got, `error="insufficient_scope"`) ||
			!strings.Contains(got, `scope="notes:read notes:write"`) {
			t.Errorf("got %d %s", resp.StatusCode, got)
		}
	})
	t.Run("SP-13 SP-14 a session belongs to who opened it", func(t *testing.T) {
		alice := open(t, endpoint, "2025-11-25", &bearer{as.token(t, "alice", "editor", "notes:read")})
		body := `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{}}`
		if status, got := post(t, endpoint, as.token(t, "mallory", "editor", "notes:read"), body, "Mcp-Session-Id",
			alice.ID(), "Mcp-Protocol-Version", "2025-11-25"); status != http.StatusNotFound {
			t.Errorf("got %d %s, want 404", status, got)
		}
	})
	t.Run("RS-196 a body is bounded, which mcp-go does not do", func(t *testing.T) {
		body := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"x":"` + strings.Repeat("x", 5<<20) + `"}}}`
		if status, got := post(t, endpoint, as.token(t, "alice", "editor", "notes:read"),
			body); status != http.StatusRequestEntityTooLarge {
			t.Errorf("got %d %s, want 413", status, got)
		}
	})
	t.Run("an open stream does not keep the program from ending", func(t *testing.T) {
		open(t, endpoint, "2025-11-25", &bearer{as.token(t, "alice", "editor", "notes:read")})
		if err := app.stop(t); err != nil {
			t.Errorf("the program ended with %v\n%s", err, app.output())
		}
	})
}

// TestMCPGoModule runs the tests of the module, which go test ./... does not include.
func TestMCPGoModule(t *testing.T) {
	for _, command := range []string{"vet", "test"} {
		if out, err := exec.Command("go", command, "-C", "../../examples/mcp-go",
			"./...").CombinedOutput(); err != nil {
			t.Errorf("go %s: %v\n%s", command, err, out)
		}
	}
}

// TestNetHTTP tests the guard with a plain http.Handler.
func TestNetHTTP(t *testing.T) {
	as := newIssuer(t)
	address := nettest.For(t)
	endpoint := "http://" + address + "/mcp"
	as.resource = endpoint
	run(t, program.Build(t, ".", "./examples/nethttp"), address, "-issuer", as.URL)
	t.Run("RS-01 RS-38 a client signs in and is known", func(t *testing.T) {
		s := open(t, endpoint, "2025-11-25", &bearer{as.token(t, "alice", "editor", "mcp")})
		if got, err := callText(t, s, "whoami", nil); got != "alice" {
			t.Errorf("got %q, %v", got, err)
		}
	})
	t.Run("RS-38 RS-39 no token, and one for another server", func(t *testing.T) {
		as.resource = "https://other.example.com/mcp"
		for _, token := range []string{"none", as.token(t, "alice", "editor", "mcp")} {
			if status, got := post(t, endpoint, token, hello); status != http.StatusUnauthorized {
				t.Errorf("got %d %s, want 401", status, got)
			}
		}
	})
}
