package demotest

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
)

// StartGateway runs serve instead of the demo, in front of an MCP server, and makes a user. The
// configuration is given as YAML: keys of the top level, and keys of the one resource.
func StartGateway(tb testing.TB, upstream, top, resource string, o Options) *Demo {
	tb.Helper()
	address := nettest.For(tb)
	file := filepath.Join(tb.TempDir(), "mcp-authd.yaml")
	d := newDemo(tb, o, "serve", "--config", file)
	d.Issuer, d.MCPURL = "http://"+address, "http://"+address+"/mcp"
	d.Username, d.Password, d.Config = "alice", "correct horse battery staple", file
	yaml := fmt.Sprintf("issuer: %s\nlisten: %s\ndata_dir: %s\nmanagement: {listen: \"\"}\n%s\n"+
		"resources:\n  - uri: %s\n    upstream: {url: %s}\n    %s\n",
		d.Issuer, address, tb.TempDir(), top, d.MCPURL, upstream,
		strings.ReplaceAll(strings.TrimSpace(resource), "\n", "\n    "))
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		tb.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { d.Stop(tb) })
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if resp, err := http.Get(d.Issuer + "/readyz"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				break
			}
		}
		if time.Now().After(end) {
			tb.Fatalf("serve did not get ready in a minute\n%s", d.log)
		}
	}
	add := exec.Command(Binary(tb), "user", "add", d.Username, "--password-stdin", "--config", file)
	add.Stdin = strings.NewReader(d.Password + "\n")
	if out, err := add.CombinedOutput(); err != nil {
		tb.Fatalf("user add: %v\n%s", err, out)
	}
	return d
}
