//go:build release

package release

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/logtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

const password = "correct horse battery staple"

// environ returns the configuration of a server at an address, in front of an MCP server with one
// tool.
func environ(t *testing.T, address string) []string {
	t.Helper()
	return []string{
		"MCP_AUTHD_LISTEN=" + address, "MCP_AUTHD_ISSUER=http://" + address, "MCP_AUTHD_MANAGEMENT_LISTEN=",
		"MCP_AUTHD_RESOURCES_0_URI=http://" + address + "/mcp", "MCP_AUTHD_RESOURCES_0_UPSTREAM_URL=" + tools(t),
	}
}

// server is a running server of the released binary, with its data in a directory.
type server struct {
	address string
	environ []string
	log     logtest.Buffer
	cmd     *exec.Cmd
	ended   chan error
}

// serve starts a server. words is a command that ends with mcp-authd's. The server ends with the
// test.
func serve(t *testing.T, words ...string) *server {
	t.Helper()
	s := &server{address: nettest.For(t), ended: make(chan error, 1)}
	s.environ = environ(t, s.address)
	s.cmd = exec.CommandContext(t.Context(), words[0], words[1:]...)
	s.cmd.Env = append(s.environ, "PATH=/usr/bin:/bin:/usr/sbin:/sbin")
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { s.ended <- s.cmd.Wait() }()
	t.Cleanup(s.stop)
	return s
}

// stop ends the server. It may be called more than once.
func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	s.ended <- <-s.ended
}

// addAlice adds the user. words is a command that ends with mcp-authd's.
func addAlice(t *testing.T, environ []string, words ...string) {
	t.Helper()
	add := exec.CommandContext(t.Context(), words[0], append(words[1:], "user", "add", "alice", "--password-stdin")...)
	add.Env, add.Stdin = environ, strings.NewReader(password+"\n")
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("DL-04: user add: %v\n%s", err, out)
	}
}

// tools starts an MCP server with one tool and returns its URL.
func tools(t *testing.T) string {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "inner", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "look"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return nil, map[string]bool{"ok": true}, nil
		})
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(func() { // open streams would block it
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL + "/mcp"
}

// status returns the HTTP status of a path, or 0 without a response.
func status(address, path string) int {
	resp, err := http.Get("http://" + address + path)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// becomes waits until a server is ready (200) or not ready (503).
func becomes(t *testing.T, address string, want int, log fmt.Stringer) {
	t.Helper()
	wait.Success(t, fmt.Sprintf("/readyz is %d (DL-04)", want), func() error {
		if got := status(address, "/readyz"); got != want {
			return fmt.Errorf("it is %d\n%s", got, log)
		}
		return nil
	})
}

// signIn makes the binary's client sign in alice at the MCP server behind a server, and list its
// tools.
func signIn(t *testing.T, binary, address string) {
	t.Helper()
	last, err := tryToSignIn(t, binary, "http://"+address+"/mcp", demotest.NewPerson("alice", password))
	if err != nil {
		t.Fatalf("DL-04: the sign-in ended with %q: %v", last, err)
	}
}

// tryToSignIn returns the last step of a sign-in, and the error.
func tryToSignIn(t *testing.T, binary, mcp string, p *demotest.Person) (last string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "login", "--no-browser", "--json", mcp)
	cmd.Env = []string{"HOME=" + t.TempDir()} // the client stores its tokens there
	var errs logtest.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var visited error
	last = steps(t, out, func(link string) {
		if visited = visit(p, link); visited != nil {
			cancel() // the client would wait for the user
		}
	})
	err = cmd.Wait()
	switch {
	case visited != nil:
		return last, visited
	case err != nil:
		return last, fmt.Errorf("%w: %s", err, &errs)
	case last != "tools":
		return last, fmt.Errorf("it did not come to the tools: %s", &errs)
	}
	return last, nil
}

// visit opens a link as the user, and returns to the client.
func visit(p *demotest.Person, link string) error {
	back, err := p.Visit(link)
	if err != nil {
		return err
	}
	resp, err := http.Get(back.String())
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	return err
}
