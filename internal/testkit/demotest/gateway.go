package demotest

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// StartGateway runs serve in front of an MCP server and creates a user. The configuration is YAML:
// top has top-level keys, and resource has keys of the one resource.
func StartGateway(tb testing.TB, upstream, top, resource string, o Options) *Demo {
	tb.Helper()
	return serve(tb, o, func(d *Demo) string {
		d.MCPURL = d.Issuer + "/mcp"
		return fmt.Sprintf("%s\nresources:\n  - uri: %s\n    upstream: {url: %s}\n    %s\n", top, d.MCPURL, upstream,
			strings.ReplaceAll(strings.TrimSpace(resource), "\n", "\n    "))
	})
}

// StartServer runs serve with the top-level configuration top, which must not have login. It
// creates a user with a role and no second factor. Its MCP server is the administration server.
func StartServer(tb testing.TB, top, role string, o Options) *Demo {
	tb.Helper()
	return serve(tb, o, func(d *Demo) string {
		d.MCPURL = d.Issuer + "/mcp/admin"
		return top + "\nlogin: {admins_second_factor: enrolled}\n"
	}, "--role", role)
}

// serve runs serve. configure returns the configuration once the issuer is known. more holds
// arguments of the command that creates the user.
func serve(tb testing.TB, o Options, configure func(*Demo) string, more ...string) *Demo {
	tb.Helper()
	address := nettest.For(tb)
	file := filepath.Join(tb.TempDir(), "mcp-authd.yaml")
	d := newDemo(tb, o, "serve", "--config", file)
	d.Issuer, d.Config = "http://"+address, file
	if o.Host != "" {
		d.Issuer = strings.Replace(d.Issuer, "127.0.0.1", o.Host, 1)
	}
	d.Username, d.Password = "alice", "correct horse battery staple"
	yaml := fmt.Sprintf("issuer: %s\nlisten: %s\ndata_dir: %s\nmanagement: {listen: \"\"}\n%s", d.Issuer, address,
		tb.TempDir(), configure(d))
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		tb.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { d.Stop(tb) })
	Ready(tb, d.Issuer, d.log)
	d.AddUser(tb, d.Username, more...)
	return d
}

// Ready waits until the server at url answers /readyz with 200. On a timeout it fails the test and
// shows the server's log.
func Ready(tb testing.TB, url string, log fmt.Stringer) {
	tb.Helper()
	err := wait.Retry(wait.Bound, func() error {
		resp, err := http.Get(url + "/readyz")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				err = errors.New(resp.Status)
			}
		}
		return err
	})
	if err != nil {
		tb.Fatalf("%s did not get ready in %v: %v\n%s", url, wait.Bound, err, log)
	}
}

// AddUser creates another user with the password of the first. more holds arguments of user add.
func (d *Demo) AddUser(tb testing.TB, name string, more ...string) *Person {
	tb.Helper()
	args := append([]string{"user", "add", name, "--password-stdin", "--config", d.Config}, more...)
	add := exec.Command(program.Authd(tb), args...)
	add.Stdin = strings.NewReader(d.Password + "\n")
	if out, err := add.CombinedOutput(); err != nil {
		tb.Fatalf("user add: %v\n%s", err, out)
	}
	return NewPerson(name, d.Password)
}
