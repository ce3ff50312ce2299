package clients

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/npmtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// goClient is a session of the Go SDK, over HTTP or through a proxy.
type goClient struct {
	*mcp.ClientSession
	p      *demotest.Person
	heard  chan float64 // progress of a slow call
	mu     sync.Mutex   // guards the fields below
	signIn int
	denied []string // challenges of its responses with status 403
}

// RoundTrip implements http.RoundTripper and records challenges of status 403.
func (c *goClient) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && resp.StatusCode == http.StatusForbidden {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.denied = append(c.denied, resp.Header.Get("WWW-Authenticate"))
	}
	return resp, err
}

func (c *goClient) signIns() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.signIn
}

func (c *goClient) denials() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.denied)
}

func (c *goClient) fetch(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	c.mu.Lock()
	c.signIn++
	c.mu.Unlock()
	back, err := c.p.Visit(args.URL)
	if err != nil {
		return nil, err
	}
	q := back.Query()
	if q.Get("error") != "" {
		return nil, fmt.Errorf("authorization: %s", back)
	}
	return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
}

// connectGo connects a client of the Go SDK for a user.
func connectGo(t *testing.T, d *demotest.Demo, p *demotest.Person) *goClient {
	t.Helper()
	return connectNamed(t, d, p, "go-sdk")
}

// connectNamed is connectGo with a name: registrations with the same name are one application.
func connectNamed(t *testing.T, d *demotest.Demo, p *demotest.Person, name string) *goClient {
	t.Helper()
	c := &goClient{p: p, heard: make(chan float64, 100)}
	const redirect = "http://localhost:3142/callback"
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		RedirectURL: redirect, AuthorizationCodeFetcher: c.fetch,
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{
			Metadata: &oauthex.ClientRegistrationMetadata{
				ClientName: name, RedirectURIs: []string{redirect},
				GrantTypes:    []string{"authorization_code", "refresh_token"},
				ResponseTypes: []string{"code"}, TokenEndpointAuthMethod: "none",
			}},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.connect(t, &mcp.StreamableClientTransport{
		Endpoint: d.MCPURL, OAuthHandler: handler, HTTPClient: &http.Client{Transport: c},
	})
	return c
}

func (c *goClient) connect(t *testing.T, transport mcp.Transport) {
	t.Helper()
	m := mcp.NewClient(&mcp.Implementation{Name: "account", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			select {
			case c.heard <- r.Params.Progress:
			default:
			}
		},
	})
	var err error
	if c.ClientSession, err = m.Connect(t.Context(), transport, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
}

func (c *goClient) tool(t *testing.T, name string, args map[string]any) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callLimit)
	defer cancel()
	result, err := c.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
	switch {
	case err != nil:
		return "", err
	case result.IsError:
		return "", fmt.Errorf("%s: %+v", name, result.Content)
	}
	b, err := json.Marshal(result.StructuredContent)
	return string(b), err
}

// count begins a call of two minutes, waits until it streams, and returns a channel for its result.
func (c *goClient) count(t *testing.T) <-chan error {
	t.Helper()
	params := &mcp.CallToolParams{Name: "slow_count", Arguments: map[string]any{"to": 60, "milliseconds": 2000}}
	params.SetProgressToken("count")
	done := make(chan error, 1)
	go func() {
		_, err := c.CallTool(t.Context(), params)
		done <- err
	}()
	select {
	case <-c.heard:
	case err := <-done:
		t.Fatalf("the call ended before it was cut: %v", err)
	case <-time.After(time.Minute):
		t.Fatal("no progress")
	}
	return done
}

// newest returns a user's newest grant.
func newest(d *demotest.Demo, p *demotest.Person) (string, error) {
	grants, err := p.Connected(d.Issuer)
	if err == nil && len(grants) == 0 {
		err = errors.New("the account page shows no application")
	}
	if err != nil {
		return "", err
	}
	return grants[0], nil
}

// press presses a button of the application that the user connected last.
func press(d *demotest.Demo, p *demotest.Person, act string, scopes ...string) error {
	grant, err := newest(d, p)
	if err != nil {
		return err
	}
	return p.Press(d.Issuer, grant, act, scopes...)
}

// wantKept checks that a client still works with its tokens.
func wantKept(t *testing.T, who string, c *goClient) {
	t.Helper()
	if out, err := c.tool(t, "whoami", nil); err != nil || !strings.Contains(out, "usr_") || c.signIns() != 1 {
		t.Errorf("PE-09 %s: got %s, %v and %d sign-ins", who, out, err, c.signIns())
	}
}

// TestDisconnectedWhileACallStreams: PE-09. A user disconnects a client on the account page during
// a tool call of two minutes. The stream ends early and the client cannot refresh. Other clients
// and other users are not affected.
func TestDisconnectedWhileACallStreams(t *testing.T) {
	t.Run("PE-09 go-sdk", disconnectGo)
	for _, version := range []string{"v1", "v2"} {
		t.Run("PE-09 TypeScript SDK "+version, func(t *testing.T) { disconnectNode(t, version) })
	}
	t.Run("PE-09 mcp-remote", disconnectRemote)
}

func disconnectGo(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	d := demotest.Start(t, demotest.Options{Args: []string{"--data", data}})
	add := exec.CommandContext(t.Context(), program.Authd(t), "user", "add", "bob", "--password-stdin",
		"--data", data)
	add.Stdin = strings.NewReader("another horse battery")
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	bobs := connectGo(t, d, demotest.NewPerson("bob", "another horse battery"))
	p := d.Person()
	other, c := connectNamed(t, d, p, "another application"), connectGo(t, d, p)
	done := c.count(t)
	if err := press(d, p, "disconnect"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if err == nil {
			t.Error("the call came to its end")
		}
	case <-time.After(wait.Bound): // the call would take 118 seconds more
		t.Error("the stream does not end")
	}
	p.Decision = "deny"
	out, err := c.tool(t, "whoami", nil)
	if err == nil || c.signIns() < 2 || strings.Contains(d.Log(), "token.refreshed") {
		t.Errorf("disconnected, and not asked: got %s and %d sign-ins", out, c.signIns())
	}
	wantKept(t, "another application of the person", other)
	wantKept(t, "another person", bobs)
}

func disconnectNode(t *testing.T, version string) {
	t.Parallel()
	d := demotest.Start(t, demotest.Options{})
	p := newPerson(t, d)
	other := connectGo(t, d, d.Person())
	pressed := make(chan error, 1)
	p.once("progress 1", func() { pressed <- press(d, p.Person, "disconnect") })
	out := run(t, p, npmtest.Command(t, "node", "clients/account.mjs", version, d.MCPURL))
	if err := <-pressed; err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(out, "connects again")
	if !strings.Contains(out, "ended ") || !strings.Contains(out, "forgets ") ||
		strings.Contains(out, "progress 50") || p.signIns() < 2 ||
		!strings.Contains(after, "usr_") || strings.Contains(d.Log(), "token.refreshed") {
		t.Errorf("got %d sign-ins and\n%s", p.signIns(), p.output())
	}
	wantKept(t, "another application of the person", other)
}

func disconnectRemote(t *testing.T) {
	t.Parallel()
	d := demotest.Start(t, demotest.Options{})
	other := connectGo(t, d, d.Person())
	p := newPerson(t, d)
	c := &goClient{p: p.Person, heard: make(chan float64, 100)}
	c.connect(t, &mcp.CommandTransport{Command: remoteCommand(t, p, d.MCPURL)})
	done := c.count(t)
	p.goAway()
	if err := press(d, p.Person, "disconnect"); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "mcp-remote cannot refresh", func() bool {
		return strings.Contains(d.Log(), `"event":"token.refused"`)
	})
	for len(c.heard) > 0 {
		<-c.heard
	}
	if _, err := other.tool(t, "slow_count", map[string]any{"to": 3, "milliseconds": 2000}); err != nil {
		t.Fatal(err)
	}
	if n := len(c.heard); n > 1 { // one may have been in transit
		t.Errorf("the stream has told of %d steps more, while another call of the same pace took three", n)
	}
	select {
	case err := <-done:
		if err == nil {
			t.Error("the call came to its end")
		}
	default: // mcp-remote need not inform its client
	}
	if strings.Contains(d.Log(), "token.refreshed") {
		t.Error("it has refreshed")
	}
	wantKept(t, "another application of the person", other)
}

// TestNarrowedOnTheAccountPage: PE-10. A user limits a client to reading. A tool that writes then
// gets a 403 with insufficient_scope. Reading continues without a new sign-in, also with the next
// access token.
func TestNarrowedOnTheAccountPage(t *testing.T) {
	t.Run("PE-10 go-sdk", func(t *testing.T) {
		t.Parallel()
		// x/oauth2 treats a token as expired ten seconds early, so each call refreshes.
		d := demotest.Start(t, demotest.Options{Env: []string{"MCP_AUTHD_TOKENS_ACCESS_TTL=10s", logRefreshes}})
		p := d.Person()
		c := connectGo(t, d, p)
		note := map[string]any{"text": "from a test"}
		if out, err := c.tool(t, "add_note", note); err != nil || c.signIns() != 2 {
			t.Fatalf("got %s, %v and %d sign-ins", out, err, c.signIns())
		}
		asked := len(c.denials())
		if err := press(d, p, "narrow", "mcp"); err != nil {
			t.Fatal(err)
		}
		before := strings.Count(d.Log(), `"event":"token.refreshed"`)
		out, err := c.tool(t, "list_notes", nil)
		if err != nil || !strings.Contains(out, "from a test") || c.signIns() != 2 {
			t.Errorf("reading: got %s, %v and %d sign-ins", out, err, c.signIns())
		}
		if strings.Count(d.Log(), `"event":"token.refreshed"`) == before {
			t.Error("the client has not refreshed")
		}
		p.Decision = "deny"
		out, err = c.tool(t, "add_note", note)
		denials := c.denials()
		if err == nil || len(denials) <= asked || !strings.Contains(denials[asked], `error="insufficient_scope"`) ||
			!strings.Contains(denials[asked], "notes:write") {
			t.Errorf("writing: got %s, %v and %q", out, err, denials[asked:])
		}
	})
	t.Run("PE-10 TypeScript SDK v2", func(t *testing.T) {
		t.Parallel()
		d := demotest.Start(t, demotest.Options{})
		p := newPerson(t, d)
		pressed := make(chan error, 1)
		p.once("from a test", func() { pressed <- press(d, p.Person, "narrow", "mcp") })
		// The client signs in, steps up, is narrowed and continues to read. To write it refreshes,
		// because it assumes that its token has the scope, and fails.
		steps := []string{"add_note", "10", "list_notes", "whoami", "add_note"}
		_, err := tryRun(t, p, npmtest.Command(t, "node",
			append([]string{"clients/sdk-v2.mjs", d.MCPURL, ""}, steps...)...))
		if err := <-pressed; err != nil {
			t.Fatal(err)
		}
		out := p.output()
		if err == nil || p.signIns() != 2 || strings.Count(out, `"structuredContent"`) != 3 ||
			!strings.Contains(out, "Server returned 403 insufficient_scope") ||
			!strings.Contains(d.Log(), "grant.narrowed") {
			t.Errorf("got %v, %d sign-ins and\n%s", err, p.signIns(), out)
		}
	})
}
