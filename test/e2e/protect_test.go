package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/logtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// stdioServer builds a stdio MCP server: the fixture of the Go SDK, from the module that we already
// depend on.
func stdioServer(t *testing.T) string {
	t.Helper()
	return program.Build(t, ".", "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
}

// protected is a running protect.
type protected struct {
	Issuer   string `json:"issuer"`
	MCPURL   string `json:"mcp_url"`
	Username string `json:"username"`
	Password string `json:"password"`
	cmd      *exec.Cmd
}

func protect(t *testing.T, args ...string) *protected {
	t.Helper()
	p := &protected{
		cmd: exec.Command(program.Authd(t),
			append([]string{"protect", "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--user", "alice", "--json"},
				args...)...),
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.stop(t) })
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil || json.Unmarshal(line, p) != nil {
		t.Fatalf("%v: %q", err, line)
	}
	return p
}

func (p *protected) stop(t *testing.T) {
	t.Helper()
	if p.cmd.ProcessState != nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended; Wait returns the error
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("protect did not exit with 0: %v", err)
	}
}

// TestProtectStdio checks that one command adds sign-in to a stdio server, and that no process
// remains.
func TestProtectStdio(t *testing.T) {
	p := protect(t, "--tool", "test_error_handling=admin", "--scope", "mcp=use it", "--scope", "admin=break it", "--",
		stdioServer(t))
	person := demotest.NewPerson(p.Username, p.Password)
	steps, err := runLogin(t, person, "--call", "test_simple_text", p.MCPURL)
	if err != nil {
		t.Fatalf("%v: %v", steps, err)
	}
	last, _ := json.Marshal(steps[len(steps)-1])
	if !strings.Contains(string(last), "simple text") {
		t.Errorf("the tool answered %s", last)
	}
	t.Run("RS-43: a tool that needs more scope is stepped up to", func(t *testing.T) {
		steps, _ := runLogin(t, demotest.NewPerson(p.Username, p.Password), "--call", "test_error_handling", p.MCPURL)
		if n := len(slices.DeleteFunc(names(steps), func(s string) bool { return s != "browser" })); n != 2 {
			t.Errorf("steps %v", names(steps))
		}
	})
	// without pgrep the list is empty, and the test passes
	out, _ := exec.Command("pgrep", "-P", fmt.Sprint(p.cmd.Process.Pid)).Output()
	children := strings.Fields(string(out))
	p.stop(t)
	for _, c := range children {
		if _, err := os.Stat("/proc/" + c); err == nil {
			t.Errorf("process %s is left", c)
		}
	}
}

// TestLastToolCall: PE-09. The account page shows which tool an application called last through the
// gateway. The end of the process loses no call.
func TestLastToolCall(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "inner", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "look"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return nil, map[string]bool{"ok": true}, nil
		})
	inner := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	defer inner.Close()
	data := t.TempDir()
	p := protect(t, "--data", data, inner.URL+"/mcp")
	for _, args := range [][]string{{}, {"--call", "look"}} {
		person := demotest.NewPerson(p.Username, p.Password)
		if steps, err := runLogin(t, person, append(args, p.MCPURL)...); err != nil {
			t.Fatalf("%v: %v", steps, err)
		}
	}
	p.stop(t)
	again := protect(t, "--data", data, "--listen", strings.TrimPrefix(p.Issuer, "http://"), inner.URL+"/mcp")
	b := newVisitor(t)
	_, page := b.open(again.Issuer + "/login")
	b.submit(again.Issuer+"/login", page, url.Values{"username": {p.Username}, "password": {p.Password}})
	_, account := b.open(again.Issuer + "/account")
	apps, calls := strings.Count(account, "data-grant="), strings.Count(account, "<dt>Last tool call</dt>")
	// Both connections belong to one application.
	if apps != 1 || calls != 1 || !strings.Contains(account, "<dt>Last tool call</dt><dd>“<bdi>look</bdi>”, <time") {
		t.Errorf("got %d applications and %d calls, want one with its call: %.6000s", apps, calls, account)
	}
}

// TestProtectHTTP checks that an MCP server without OAuth sees the caller, can verify it, and never
// sees the token.
func TestProtectHTTP(t *testing.T) {
	var seen http.Header
	s := mcp.NewServer(&mcp.Implementation{Name: "inner", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "look"},
		func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			seen = r.Extra.Header.Clone()
			return nil, map[string]bool{"ok": true}, nil
		})
	inner := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	defer inner.Close()
	p := protect(t, inner.URL+"/mcp")
	if steps, err := runLogin(t, demotest.NewPerson(p.Username, p.Password), "--call", "look",
		p.MCPURL); err != nil || seen == nil {
		t.Fatalf("%v: %v", steps, err)
	}
	if seen.Get("Authorization") != "" || seen.Get("X-Mcp-Scope") != "mcp" || seen.Get("X-Mcp-Subject") == "" ||
		seen.Get("X-Mcp-Client") == "" {
		t.Errorf("RS-49: the MCP server got %v", seen)
	}
	t.Run("the identity token verifies by the published keys", func(t *testing.T) {
		resp, err := http.Get(p.Issuer + "/jwks.json")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var keys jose.JSONWebKeySet
		if err := json.NewDecoder(resp.Body).Decode(&keys); err != nil {
			t.Fatal(err)
		}
		token, err := jwt.ParseSigned(seen.Get("X-Mcp-Identity"), []jose.SignatureAlgorithm{jose.ES256})
		if err != nil {
			t.Fatal(err)
		}
		var c jwt.Claims
		if err := token.Claims(&keys, &c); err != nil {
			t.Fatal(err)
		}
		if err := c.Validate(jwt.Expected{
			Issuer: p.Issuer, AnyAudience: jwt.Audience{inner.URL + "/mcp"}, Subject: seen.Get("X-Mcp-Subject"),
			Time: time.Now()}); err != nil {
			t.Error(err)
		}
		if typ := token.Headers[0].ExtraHeaders[jose.HeaderType]; typ != "mcp-identity+jwt" {
			t.Errorf("typ is %v", typ)
		}
	})
	t.Run("RS-42: and is no access token", func(t *testing.T) {
		req, _ := http.NewRequest(http.MethodPost, p.MCPURL,
			strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		req.Header.Set("Authorization", "Bearer "+seen.Get("X-Mcp-Identity"))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("got %s", resp.Status)
		}
	})
	t.Run("readyz tells of the MCP server", func(t *testing.T) {
		for _, want := range []string{"up", "down"} {
			var ready struct{ Upstreams map[string]string }
			wait.Success(t, "the MCP server is "+want, func() error {
				resp, err := http.Get(p.Issuer + "/readyz")
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				err = json.NewDecoder(resp.Body).Decode(&ready)
				if err != nil || resp.StatusCode != http.StatusOK {
					t.Fatalf("%s, %v", resp.Status, err)
				}
				if ready.Upstreams[p.MCPURL] != want {
					err = fmt.Errorf("got %v", ready)
				}
				return err
			})
			inner.Close()
		}
	})
}

// TestServeUpstreams tests several MCP servers in one configuration, by path and by host.
func TestServeUpstreams(t *testing.T) {
	inner := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(r.URL.Path)) }),
	)
	defer inner.Close()
	address := nettest.For(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "mcp-authd.yaml")
	yaml := fmt.Sprintf(`issuer: http://%[1]s
listen: %[1]s
management: {listen: ""}
data_dir: %[2]s
resources:
  - uri: http://%[1]s/one
    upstream: {url: "%[3]s/a"}
  - uri: http://%[1]s/two
    scopes: [{name: mcp, description: use it}, {name: admin, description: change it}]
    tools: [{name: "delete_*", scopes: [admin]}, {name: drop, deny: true}]
    upstream: {url: "%[3]s/b", headers: ["X-Api-Key: k"], identity: {token: none}}
  - uri: https://three.example.com/mcp
    upstream: {command: [cat]}
`, address, dir, inner.URL)
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	var log logtest.Buffer
	cmd := exec.Command(program.Authd(t), "serve", "--config", file)
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // Wait returns the error
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}()
	demotest.Ready(t, "http://"+address, &log)
	get := func(host, path string) (int, string) {
		req, _ := http.NewRequest(http.MethodGet, "http://"+address+path, nil)
		if host != "" {
			req.Host = host
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode, resp.Header.Get("WWW-Authenticate")
	}
	for _, c := range []struct {
		host, path, challenge string
		status                int
	}{
		{"", "/one", "/.well-known/oauth-protected-resource/one", 401},
		{"", "/two",
			`scope="mcp", resource_metadata="http://` + address + `/.well-known/oauth-protected-resource/two"`,
			401},
		{"three.example.com", "/mcp", "https://three.example.com/.well-known/oauth-protected-resource/mcp", 401},
		{"three.example.com", "/.well-known/oauth-protected-resource/mcp", "", 200},
		{"three.example.com", "/token", "", 404},
		{"", "/.well-known/oauth-protected-resource/one", "", 200},
		{"", "/.well-known/oauth-authorization-server", "", 200}, {"", "/mcp", "", 404},
	} {
		if status, challenge := get(c.host, c.path); status != c.status || !strings.Contains(challenge, c.challenge) {
			t.Errorf("%s%s: got %d %s, want %d %s", c.host, c.path, status, challenge, c.status, c.challenge)
		}
	}
}

// TestProtectTells: usability 3. protect prints the server, its name and the required scopes, and
// reports if the server does not answer yet.
func TestProtectTells(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "notes of all", Version: "1"}, nil)
	inner := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	defer inner.Close()
	for _, c := range []struct {
		url  string
		want []string
	}{
		{inner.URL, []string{
			inner.URL + " is protected.", "name       notes of all", "policy     everything needs mcp",
			"calling delete_* needs mcp notes:write",
		}},
		{"http://127.0.0.1:1/mcp",
			[]string{"http://127.0.0.1:1/mcp will be protected, and is not ready yet: it does not answer",
				"connection refused"}},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cmd := exec.CommandContext(ctx, program.Authd(t), "protect", "--listen", "127.0.0.1:0", "--data", t.TempDir(),
			"--scope", "mcp=use it", "--scope", "notes:write=change notes", "--tool", "delete_*=notes:write", c.url)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := ""
		for lines := bufio.NewScanner(out); !strings.Contains(said, "Stop with Ctrl-C") && lines.Scan(); {
			said += lines.Text() + "\n"
		}
		cancel()
		_ = cmd.Wait() // killed
		for _, want := range c.want {
			if !strings.Contains(said, want) {
				t.Errorf("%s: it does not say %q:\n%s", c.url, want, said)
			}
		}
	}
}
