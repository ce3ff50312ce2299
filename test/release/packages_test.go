//go:build release

package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/logtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
)

// installed are files that each package has.
var installed = []string{
	"/etc/mcp-authd/config.yaml", "/usr/bin/mcp-authd", "/usr/lib/systemd/system/mcp-authd.service",
	"/usr/lib/sysusers.d/mcp-authd.conf", "/usr/share/bash-completion/completions/mcp-authd",
	"/usr/share/doc/mcp-authd/copyright", "/usr/share/fish/vendor_completions.d/mcp-authd.fish",
	"/usr/share/man/man1/mcp-authd.1.gz", "/usr/share/man/man1/mcp-authd-user-add.1.gz",
}

// TestContents: each package has the program, its unit, its pages and its completions, of root (DL-04).
func TestContents(t *testing.T) {
	for what, list := range map[string]string{
		"deb": output(t, "dpkg-deb", "-c", one(t, "*_amd64.deb")),
		"rpm": output(t, "rpm", "-qplv", one(t, "*.x86_64.rpm")),
		"apk": output(t, "tar", "-tvzf", one(t, "*_x86_64.apk")),
	} {
		for _, file := range installed {
			if !strings.Contains(list, file[1:]+"\n") {
				t.Errorf("DL-04: the %s lacks %s:\n%s", what, file, list)
			}
		}
		for line := range strings.Lines(list) {
			if strings.HasPrefix(line, "-") && (strings.Contains(line[:10], "s") || line[8] == 'w') {
				t.Errorf("DL-04: the %s has %s", what, line)
			}
		}
	}
	if out := output(t, "rpm", "-K", "--nosignature", one(t, "*.x86_64.rpm")); !strings.Contains(out, "digests OK") {
		t.Errorf("DL-04: rpm says %s", out)
	}
}

// TestLintian: Debian's linter finds no error in the deb (DL-04).
func TestLintian(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "lintian", "--fail-on", "error", "--allow-root",
		one(t, "*_amd64.deb")).CombinedOutput()
	if err != nil {
		t.Errorf("DL-04: lintian: %v\n%s", err, out)
	}
}

// TestDebianPackage: on a Debian the deb is installed, its service runs as its user with the configuration
// that it came with, and a person signs in; what is stored survives that it is removed (DL-04). The Debian
// is this machine's, with a layer in which the changes are, and which goes with the test.
func TestDebianPackage(t *testing.T) {
	root := layered(t)
	deb := one(t, "*_"+runtime.GOARCH+".deb")
	b, err := os.ReadFile(deb)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "mcp-authd.deb"), b, 0o644); err != nil {
		t.Fatal(err)
	}
	output(t, "chroot", root, "dpkg", "-i", "/mcp-authd.deb")
	output(t, "chroot", root, "man", "-w", "mcp-authd-user-add")
	output(t, "chroot", root, "systemd-analyze", "verify", "--man=no", "/usr/lib/systemd/system/mcp-authd.service")

	// systemd does not run in there. Its part: the directory, of the user that the package has made.
	const state = "/var/lib/mcp-authd"
	output(t, "chroot", root, "install", "-d", "-o", "mcp-authd", "-g", "mcp-authd", "-m", "0700", state)
	address := nettest.For(t)
	var log logtest.Buffer
	serve := exec.CommandContext(t.Context(), "chroot", root, "setpriv", "--reuid=mcp-authd", "--regid=mcp-authd",
		"--init-groups", "--no-new-privs", "/usr/bin/mcp-authd", "serve", "--config", "/etc/mcp-authd/config.yaml")
	serve.Env = []string{
		"MCP_AUTHD_LISTEN=" + address, "MCP_AUTHD_ISSUER=http://" + address, "MCP_AUTHD_MANAGEMENT_LISTEN=",
		"MCP_AUTHD_RESOURCES_0_URI=http://" + address + "/mcp", "MCP_AUTHD_RESOURCES_0_UPSTREAM_URL=" + tools(t),
	}
	serve.Stderr, serve.Stdout = &log, &log
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = serve.Process.Signal(syscall.SIGTERM) // it may have ended; Wait tells
		if err := serve.Wait(); err != nil && !t.Failed() {
			t.Errorf("DL-04: the service did not exit with 0: %v\n%s", err, &log)
		}
	})
	ready(t, "http://"+address, &log)

	add := exec.CommandContext(t.Context(), "chroot", root, "/usr/bin/mcp-authd", "user", "add", "alice",
		"--password-stdin", "--config", "/etc/mcp-authd/config.yaml")
	add.Env, add.Stdin = serve.Env, strings.NewReader("correct horse battery staple\n")
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("DL-04: user add: %v\n%s", err, out)
	}
	signIn(t, one(t, "mcp-authd_linux_"+runtime.GOARCH+"_*/mcp-authd"), "http://"+address+"/mcp",
		demotest.NewPerson("alice", "correct horse battery staple"))

	_ = serve.Process.Signal(syscall.SIGTERM) // removal asks systemd for it
	output(t, "chroot", root, "dpkg", "--purge", "mcp-authd")
	if _, err := os.Stat(filepath.Join(root, "usr/bin/mcp-authd")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("DL-04: the program is there after it was removed (%v)", err)
	}
	if _, err := os.Stat(filepath.Join(root, state, "secret.key")); err != nil {
		t.Errorf("DL-04: the key went with the package: %v", err)
	}
}

// tools is the URL of an MCP server with one tool.
func tools(t *testing.T) string {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "inner", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "look"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return nil, map[string]bool{"ok": true}, nil
		})
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(func() { // streams would hold it
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL + "/mcp"
}

// layered is a root directory that has what this machine has, and whose changes go with the test.
func layered(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	mount := func(args ...string) {
		output(t, "mount", args...)
		t.Cleanup(func() { exec.Command("umount", "-l", args[len(args)-1]).Run() }) // it goes with the machine else
	}
	mount("-t", "tmpfs", "tmpfs", dir)
	for _, name := range []string{"upper", "work", "root"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	root := filepath.Join(dir, "root")
	mount("-t", "overlay", "overlay", "-o",
		fmt.Sprintf("lowerdir=/,upperdir=%s/upper,workdir=%s/work", dir, dir), root)
	mount("-t", "proc", "proc", filepath.Join(root, "proc"))
	mount("--bind", "/dev", filepath.Join(root, "dev"))
	return root
}

// ready waits until a server answers.
func ready(t *testing.T, issuer string, log fmt.Stringer) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if resp, err := http.Get(issuer + "/readyz"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
	}
	t.Fatalf("DL-04: the server is not ready within a minute\n%s", log)
}

// signIn has the client of the binary sign a person in to an MCP server, and list its tools.
func signIn(t *testing.T, binary, mcp string, p *demotest.Person) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, "login", "--no-browser", "--json", mcp)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	last := steps(t, out, func(link string) {
		back, err := p.Visit(link)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.Get(back.String())
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
		resp.Body.Close()
	})
	if err := cmd.Wait(); err != nil || last != "tools" {
		t.Errorf("DL-04: the sign-in ended with %q (%v)", last, err)
	}
}
