package conformance

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/gateway"
	"github.com/mcp-authd/mcp-authd/internal/gateway/stdio"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/npmtest"
)

// everythingJS returns the command of the TypeScript SDK's reference server.
func everythingJS(t *testing.T, transport string) []string {
	t.Helper()
	modules := filepath.Join(npmtest.Dir(t), "node_modules")
	return []string{
		filepath.Join(modules, ".bin", "node"),
		filepath.Join(modules, "@modelcontextprotocol", "server-everything", "dist", "index.js"), transport,
	}
}

// listening starts it as an HTTP server.
func listening(t *testing.T) string {
	t.Helper()
	address := nettest.For(t)
	command := everythingJS(t, "streamableHttp")
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "PORT="+address[strings.LastIndexByte(address, ':')+1:])
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	})
	waitFor(t, address)
	return "http://" + address + "/mcp"
}

func httpGateway(t *testing.T, upstream string) http.Handler {
	t.Helper()
	g, err := gateway.New(gateway.Config{URL: upstream, Resource: "http://127.0.0.1/"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}

func stdioGateway(t *testing.T, c stdio.Config) http.Handler {
	t.Helper()
	g, err := stdio.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}

// TestGateway tests the gateway in front of the TypeScript reference server, over HTTP and over
// standard input and output. No scenario of any revision may have a failure that the server alone
// does not have.
func TestGateway(t *testing.T) {
	npmtest.Dir(t)
	direct := listening(t)
	gateways := []struct{ name, url string }{
		{"HTTP", protected(t, httpGateway(t, direct))},
		{"stdio", protected(t, stdioGateway(t, stdio.Config{Command: everythingJS(t, "stdio")}))},
		{"stdio, shared", protected(t, stdioGateway(t, stdio.Config{Command: everythingJS(t, "stdio"), Shared: true}))},
	}
	for _, revision := range []string{"2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			if revision != "2025-11-25" {
				lane.Long(t, "2025-11-25 is what most clients speak")
			}
			want, output := all(t, direct, revision)
			if len(want) == 0 {
				t.Fatalf("nothing ran: %s", output)
			}
			for _, g := range gateways {
				t.Run("RS-01 over "+g.name, func(t *testing.T) { compare(t, g.url, revision, want) })
			}
		})
	}
}

// TestGatewayFixture is TestGateway with the fixture of the Go SDK, which supports every scenario
// of the suite.
func TestGatewayFixture(t *testing.T) {
	lane.Long(t, "TestGateway runs the suite in front of the reference server")
	npmtest.Dir(t)
	sessions, stateless := everything(t)
	direct := plain(t, eras(sessions, stateless))
	command := []string{buildFixture(t)}
	gateways := []struct{ name, url string }{
		{"HTTP", protected(t, eraSwitch(httpGateway(t, sessions.String()), httpGateway(t, stateless.String())))},
		{"stdio", protected(t, stdioGateway(t, stdio.Config{Command: command}))},
	}
	for _, revision := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		want, output := all(t, direct, revision)
		if len(want) == 0 {
			t.Fatalf("nothing ran: %s", output)
		}
		for _, g := range gateways {
			t.Run("RS-01 "+revision+" over "+g.name, func(t *testing.T) { compare(t, g.url, revision, want) })
		}
	}
}

// all runs every scenario of a revision.
func all(t *testing.T, target, revision string) (map[string][2]int, string) {
	t.Helper()
	cmd := npmtest.Command(t, "conformance", "server", "--url", target, "--suite", "all", "--spec-version", revision,
		"-o", t.TempDir())
	out, _ := cmd.CombinedOutput() // failed scenarios are compared below
	return read(string(out)), string(out)
}

func compare(t *testing.T, target, revision string, want map[string][2]int) {
	t.Helper()
	got, output := all(t, target, revision)
	if len(got) != len(want) {
		t.Fatalf("%d scenarios ran behind the gateway and %d without it:\n%s", len(got), len(want), output)
	}
	if worse(got, want) != "" { // the fixture is flaky, so only a repeated failure counts
		got, output = all(t, target, revision)
	}
	if bad := worse(got, want); bad != "" {
		t.Errorf("fails behind the gateway and not without it: %s\n%s", bad, output)
	}
	t.Log(regexp.MustCompile(`Total: .*`).FindString(output))
}

func eraSwitch(sessions, stateless http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= "2026-07-28" {
			stateless.ServeHTTP(w, r)
			return
		}
		sessions.ServeHTTP(w, r)
	})
}
