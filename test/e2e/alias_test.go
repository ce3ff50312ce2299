package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/logtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

const aliasPassword = "correct horse battery staple"

// aliased is the server as the gateway to an MCP server with an alias, with alice and bob.
type aliased struct {
	config, mcp, work string
}

func newAliased(t *testing.T, upstream string) *aliased {
	address := nettest.For(t)
	a := &aliased{
		config: filepath.Join(t.TempDir(), "mcp-authd.yaml"), mcp: "http://" + address + "/mcp",
		work: "http://" + address + "/mcp@work",
	}
	yaml := fmt.Sprintf(`issuer: http://%[1]s
listen: %[1]s
data_dir: %[2]s
management: {listen: ""}
resources:
  - uri: %[3]s
    name: Notes
    aliases: [%[4]s]
    upstream: {url: %[5]s}
    scopes: [{name: mcp, description: use it, default: true}]
`, address, t.TempDir(), a.mcp, a.work, upstream)
	if err := os.WriteFile(a.config, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	var log logtest.Buffer
	server := exec.Command(program.Authd(t), "serve", "--config", a.config)
	server.Stderr = &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGTERM) // Wait returns the error
		if err := server.Wait(); err != nil {
			t.Errorf("serve did not exit with 0: %v\n%s", err, log.String())
		}
	})
	demotest.Ready(t, "http://"+address, &log)
	a.run(t, aliasPassword+"\n", "user", "add", "alice", "--password-stdin")
	a.run(t, aliasPassword+"\n", "user", "add", "bob", "--password-stdin")
	return a
}

func (a *aliased) run(t *testing.T, in string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program.Authd(t), append(args, "--config", a.config)...)
	cmd.Stdin = strings.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return string(out)
}

// connectAt connects the SDK's client at a URL for a user.
func connectAt(t *testing.T, endpoint string, p *demotest.Person) (*client, error) {
	c := &client{}
	handler, err := c.handler(p)
	if err != nil {
		t.Fatal(err)
	}
	c.oauth = handler
	c.ClientSession, err = mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: endpoint, OAuthHandler: handler}, nil)
	if err == nil {
		t.Cleanup(func() { c.Close() })
	}
	return c, err
}

// who returns the caller that the tool sees.
func (c *client) who(t *testing.T) string {
	t.Helper()
	var out struct{ Subject string }
	c.call(t, "whoami", nil, &out)
	return out.Subject
}

func (c *client) bearer(t *testing.T) string {
	t.Helper()
	source, err := c.oauth.TokenSource(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	token, err := source.Token()
	if err != nil {
		t.Fatal(err)
	}
	return token.AccessToken
}

// TestAliasForAnotherPerson: AS-239: the SDK's own client connects to an MCP server and to its
// alias, as two users of one browser. The tool sees two users. Neither token is valid at the other
// URL, and ending one connection does not affect the other.
func TestAliasForAnotherPerson(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "inner", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "whoami"},
		func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			return nil, map[string]string{"subject": r.Extra.Header.Get("X-Mcp-Subject")}, nil
		})
	inner := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(func() { // after the clients, whose streams would block it
		inner.CloseClientConnections()
		inner.Close()
	})
	a := newAliased(t, inner.URL)

	alice := demotest.NewPerson("alice", aliasPassword)
	bob := alice.Beside("bob", aliasPassword)
	own, err := connectAt(t, a.mcp, alice)
	if err != nil {
		t.Fatal(err)
	}
	other, err := connectAt(t, a.work, bob)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("the first time at the alias, the person says who they are", func(t *testing.T) {
		if len(bob.Pages) == 0 || !strings.Contains(bob.Pages[0], `action="/choose"`) ||
			!strings.Contains(bob.Pages[0], "<bdi>alice</bdi>") || !strings.Contains(bob.Pages[0], "Notes (work)") {
			t.Errorf("bob was shown %.800q", bob.Pages)
		}
	})
	alices, bobs := own.who(t), other.who(t)
	if alices == bobs || !strings.HasPrefix(alices, "usr_") || !strings.HasPrefix(bobs, "usr_") {
		t.Fatalf("the tool sees %q at the resource and %q at the alias", alices, bobs)
	}
	if again := own.who(t); again != alices {
		t.Errorf("at the resource, afterwards: got %q, want %q", again, alices)
	}
	for at, c := range map[string]*client{a.mcp: other, a.work: own} {
		t.Run("a token of the other URL is refused at "+at, func(t *testing.T) {
			status, challenge := ping(t, at, c.bearer(t))
			path := strings.TrimPrefix(at, a.mcp[:strings.LastIndex(a.mcp, "/")])
			if status != http.StatusUnauthorized || !strings.Contains(challenge, `error="invalid_token"`) ||
				!strings.Contains(challenge, "/.well-known/oauth-protected-resource"+path+`"`) {
				t.Errorf("got %d %s", status, challenge)
			}
		})
	}
	t.Run("cutting one connection leaves the other", func(t *testing.T) {
		var grants []struct {
			ID       string `json:"id"`
			Resource string `json:"resource"`
		}
		if err := json.Unmarshal([]byte(a.run(t, "", "grant", "list", "--json")), &grants); err != nil {
			t.Fatal(err)
		}
		for _, g := range grants {
			if g.Resource == a.work {
				a.run(t, "", "grant", "revoke", g.ID, "--yes")
			}
		}
		if len(grants) != 2 {
			t.Fatalf("got %+v", grants)
		}
		gone := other.bearer(t)
		wait.Until(t, "bob's connection is refused", func() bool {
			status, _ := ping(t, a.work, gone)
			return status == http.StatusUnauthorized
		})
		if got := own.who(t); got != alices {
			t.Errorf("alice: got %q", got)
		}
	})
}

// ping sends a request without the SDK.
func ping(t *testing.T, endpoint, token string) (status int, challenge string) {
	t.Helper()
	req, _ := http.NewRequest(http.MethodPost, endpoint,
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.Header.Get("WWW-Authenticate")
}
