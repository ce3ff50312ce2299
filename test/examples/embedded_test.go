package examples

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
)

const redirect = "http://localhost:3142/callback"

var setupLink = regexp.MustCompile(`http://\S+/setup#token=\S+`)

// TestEmbedded checks that one main.go provides login, consent, storage and tokens.
func TestEmbedded(t *testing.T) {
	binary := program.Build(t, ".", "./examples/embedded")
	data, address := filepath.Join(t.TempDir(), "data"), nettest.For(t)
	ada := demotest.NewPerson("ada", "correct horse battery staple") // an administrator must have a second factor
	bob := demotest.NewPerson("bob", "a few words in a row")
	app := runReady(t, binary, address, "-data", data)
	base := "http://" + address
	t.Run("RS-01 RS-03 AS-16 discovery at the root of the host and of the endpoint",
		func(t *testing.T) { checkDiscovery(t, base) })
	t.Run("the first account is made by the setup link, once", func(t *testing.T) {
		link := setupLink.FindString(app.output())
		if err := ada.SetUp(link); err != nil {
			t.Fatalf("%v\n%s", err, app.output())
		}
		if err := demotest.NewPerson("eve", "correct horse battery staple").SetUp(link); err == nil {
			t.Error("the setup link worked twice")
		}
	})
	t.Run("keys and database are the owner's alone", func(t *testing.T) {
		for path, want := range map[string]os.FileMode{
			data: 0o700, filepath.Join(data, "secret.key"): 0o600, filepath.Join(data, "mcp-authd.db"): 0o600,
		} {
			info, err := os.Stat(path)
			if err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: got %v, %v, want %v", path, info.Mode().Perm(), err, want)
			}
		}
	})
	t.Run("the commands of mcp-authd work on its data", func(t *testing.T) {
		add := exec.Command(program.Authd(t), "user", "add", "bob", "--password-stdin", "--data", data)
		add.Stdin = strings.NewReader("a few words in a row\n")
		if out, err := add.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		connect(t, base+"/mcp", bob).call(t, "whoami", nil)
	})
	var c *client
	t.Run("RS-28 AS-114 sign-in, a call, and step-up with the Go SDK", func(t *testing.T) {
		c = connect(t, base+"/mcp", bob)
		if who := c.call(t, "whoami", nil); !strings.Contains(who, `"notes:read"`) ||
			strings.Contains(who, "notes:write") || c.visits.Load() != 1 {
			t.Errorf("got %s after %d sign-ins", who, c.visits.Load())
		}
		if got := c.call(t, "add_note", map[string]any{"text": "remember the milk"}); !strings.Contains(got,
			"remember the milk") || c.visits.Load() != 2 {
			t.Errorf("got %s after %d sign-ins", got, c.visits.Load())
		}
	})
	t.Run("RS-44 SP-13 a revoked token ends at once", func(t *testing.T) {
		token := c.token(t)
		if status, body := post(t, base+"/mcp", token.AccessToken, hello); status != http.StatusOK ||
			!strings.Contains(body, `"serverInfo"`) {
			t.Fatalf("got %d %s", status, body)
		}
		if status, body := form(t, base+"/revoke",
			url.Values{"token": {token.RefreshToken}, "client_id": {c.id(t)}}); status != http.StatusOK {
			t.Fatalf("revoke: got %d %s", status, body)
		}
		if status, body := post(t, base+"/mcp", token.AccessToken, hello); status != http.StatusUnauthorized {
			t.Errorf("got %d %s after the revocation, want 401", status, body)
		}
	})
	t.Run("CL-20 AS-114 step-up with the TypeScript SDK", func(t *testing.T) {
		out, visits := script(t, bob, "sdk-v2.mjs", base+"/mcp", "whoami", "add_note")
		if !strings.Contains(out, "from a test") || visits != 2 {
			t.Errorf("got %d sign-ins and %s", visits, out)
		}
	})
	t.Run("an open stream does not keep the program from ending", func(t *testing.T) {
		stream := connect(t, base+"/mcp", bob) // the Go SDK opens one
		stream.call(t, "whoami", nil)
		if err := app.stop(t); err != nil {
			t.Errorf("the program ended with %v\n%s", err, app.output())
		}
	})
	t.Setenv("MCP_AUTHD_TOKENS_ACCESS_TTL", "5s")
	app = runReady(t, binary, address, "-data", data)
	t.Run("a second start knows its people, and offers no setup", func(t *testing.T) {
		if link := setupLink.FindString(app.output()); link != "" {
			t.Errorf("the second start offers %s", link)
		}
		connect(t, base+"/mcp", bob).call(t, "whoami", nil)
	})
	t.Run("AS-94 refresh with the Go SDK", func(t *testing.T) {
		c := connect(t, base+"/mcp", bob)
		before := c.token(t).RefreshToken
		c.call(t, "whoami", nil) // it treats a token as expired ten seconds early
		if after := c.token(t).RefreshToken; after == before || c.visits.Load() != 1 {
			t.Errorf("got %d sign-ins, and the refresh token has not changed", c.visits.Load())
		}
	})
	for _, name := range []string{"sdk-v1.mjs", "sdk-v2.mjs"} {
		t.Run("AS-94 refresh with the TypeScript SDK, "+name, func(t *testing.T) {
			t.Parallel()
			out, visits := script(t, demotest.NewPerson(bob.Username, bob.Password), name, base+"/mcp", "whoami", "6",
				"whoami")
			if visits != 1 || strings.Count(out, `"structuredContent"`) != 2 {
				t.Errorf("got %d sign-ins and %s", visits, out)
			}
		})
	}
}

// TestEmbeddedUpkeep checks issue 11, 4.3, 4.4 and Security L14 for a program that embeds the
// server.
func TestEmbeddedUpkeep(t *testing.T) {
	binary, data := program.Build(t, ".", "./examples/embedded"), filepath.Join(t.TempDir(), "data")
	key := filepath.Join(data, "secret.key")
	first := runReady(t, binary, nettest.For(t), "-data", data)
	if strings.Contains(first.output(), "another server") {
		t.Errorf("alone, it says:\n%s", first.output())
	}
	second := runReady(t, binary, nettest.For(t), "-data", data)
	if !strings.Contains(second.output(), "another server uses this database") {
		t.Errorf("beside another one, it says:\n%s", second.output())
	}
	if out, err := exec.Command(program.Authd(t), "doctor", "--data", data).CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "2 servers use ") {
		t.Errorf("doctor: %v\n%s", err, out)
	}
	for _, p := range []*running{first, second} {
		if err := p.stop(t); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(why, want string) {
		t.Helper()
		out, err := exec.Command(binary, "-listen", nettest.For(t), "-data", data).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: got %v\n%s", why, err, out)
		}
	}
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	refused("a key that all can read", "is not secret: every user can read it")
	if err := os.Rename(key, key+".away"); err != nil {
		t.Fatal(err)
	}
	refused("no key", "the secret key is missing: put "+key+" back")
	if _, err := os.Stat(key); err == nil {
		t.Error("there is a new key")
	}
	if err := os.WriteFile(key, []byte(strings.Repeat("ab", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	refused("another key", "the secret key is not the one this database was made with")
}

func checkDiscovery(t *testing.T, base string) {
	t.Helper()
	for path, want := range map[string]string{
		"/.well-known/oauth-authorization-server":   `"issuer":"` + base + `"`,
		"/.well-known/openid-configuration":         `"registration_endpoint":"` + base + `/register"`,
		"/.well-known/oauth-protected-resource/mcp": `"resource":"` + base + `/mcp"`,
		"/.well-known/oauth-protected-resource":     `"authorization_servers":["` + base + `"]`,
	} {
		resp, err := http.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body) // a partial body fails the comparison
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK || !strings.Contains(strings.ReplaceAll(string(body), " ", ""), want) {
			t.Errorf("%s: got %d %s, want %s", path, resp.StatusCode, body, want)
		}
	}
	// Clients of 2025-03-26 request these if they find no metadata.
	for _, path := range []string{"/authorize", "/token", "/register"} {
		resp, err := http.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusNotFound {
			t.Errorf("%s is not there", path)
		}
	}
}

// client is the Go SDK's client with its own OAuth handler. Only the browser is part of the test.
type client struct {
	*mcp.ClientSession
	oauth  auth.OAuthHandler
	visits atomic.Int32
	link   string // the last URL of the browser
}

func connect(t *testing.T, endpoint string, p *demotest.Person) *client {
	t.Helper()
	c := &client{}
	var err error
	c.oauth, err = auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{
			Metadata: &oauthex.ClientRegistrationMetadata{
				ClientName: "go-sdk", RedirectURIs: []string{redirect},
				GrantTypes:    []string{"authorization_code", "refresh_token"},
				ResponseTypes: []string{"code"}, TokenEndpointAuthMethod: "none",
			}},
		RedirectURL: redirect,
		AuthorizationCodeFetcher: func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult,
			error) {
			c.visits.Add(1)
			c.link = args.URL
			back, err := p.Visit(args.URL)
			if err != nil {
				return nil, err
			}
			q := back.Query()
			if q.Get("error") != "" {
				return nil, fmt.Errorf("authorization: %s", back)
			}
			return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	m := mcp.NewClient(&mcp.Implementation{Name: "examples", Version: "1"}, nil)
	c.ClientSession, err = m.Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: endpoint, OAuthHandler: c.oauth}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// call calls a tool and returns its result as JSON.
func (c *client) call(t *testing.T, tool string, args map[string]any) string {
	t.Helper()
	r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil || r.IsError {
		t.Fatalf("%s: %+v, %v", tool, r, err)
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (c *client) token(t *testing.T) *oauth2.Token {
	t.Helper()
	source, err := c.oauth.TokenSource(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	token, err := source.Token()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// id returns the client id, which the SDK does not expose.
func (c *client) id(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(c.link)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get("client_id")
}

// hello opens a session, and so requires none.
const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`

// post sends one message that requires no session.
func post(t *testing.T, endpoint, token, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+token)
	for pair := range slices.Chunk(header, 2) {
		req.Header.Set(pair[0], pair[1])
	}
	return do(t, req)
}

func form(t *testing.T, endpoint string, values url.Values) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint, strings.NewReader(values.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return do(t, req)
}

func do(t *testing.T, req *http.Request) (int, string) {
	t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}
