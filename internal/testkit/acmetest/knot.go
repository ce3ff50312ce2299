package acmetest

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/mcp-authd/mcp-authd/internal/testkit/module"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// NameServer is the name server Knot of Debian, which accepts updates with a key.
type NameServer struct {
	Address string // for UDP and TCP
	KeyName string
	Secret  string // key for hmac-sha256, in base64
}

// knot returns the path of the name server. If it is not installed, knot skips the test, or fails
// it with CI=true.
func knot(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"knotd", "/usr/sbin/knotd"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("the name server Knot is not installed (on Debian: apt-get install knot)")
	}
	t.Skip("the name server Knot is not installed (on Debian: apt-get install knot)")
	return ""
}

// StartNames starts a name server for a zone. Each name in records, which have the form of a zone
// file, resolves to this machine. The server ends with the test.
func StartNames(t *testing.T, zone string, records ...string) *NameServer {
	t.Helper()
	program, dir := knot(t), t.TempDir()
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		t.Fatal(err)
	}
	n := &NameServer{Address: nettest.For(t), KeyName: "authd", Secret: base64.StdEncoding.EncodeToString(key)}
	host, port, err := net.SplitHostPort(n.Address)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, lines ...string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("zone", append([]string{
		"$ORIGIN " + zone + ".", "@ 60 IN SOA ns.example.net. admin.example.net. 1 60 60 60 60", "@ 60 IN NS ns",
		"ns 60 IN A 127.0.0.1",
	}, records...)...)
	write("authd.key", "key:", "  - id: "+n.KeyName, "    algorithm: hmac-sha256", "    secret: "+n.Secret)
	published, err := os.ReadFile(module.Path(t, "deploy/dns/knot.conf"))
	if err != nil {
		t.Fatal(err)
	}
	config := write("knot.conf",
		"server:", "  listen: "+host+"@"+port, "  rundir: "+dir, "  pidfile: "+filepath.Join(dir, "knot.pid"),
		"  background-workers: 1", "  udp-workers: 1", "  tcp-workers: 1",
		"log:", "  - target: stderr", "    any: warning",
		"database:", "  storage: "+dir,
		"template:", "  - id: default", "    storage: "+dir, "    file: zone", "    zonefile-sync: -1",
		"    zonefile-load: difference-no-serial", "    journal-content: all",
		strings.Replace(string(published), "acme.example.net", zone, 1)) // the example from the manual
	cmd := exec.Command(program, "--config", config)
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	question := new(dns.Msg).SetQuestion(dns.Fqdn(zone), dns.TypeSOA)
	err = wait.Retry(wait.Bound, func() error {
		answer, _, err := new(dns.Client).Exchange(question, n.Address)
		if err == nil && (answer.Rcode != dns.RcodeSuccess || len(answer.Answer) != 1) {
			err = fmt.Errorf("it answers %s", answer)
		}
		return err
	})
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Fatalf("Knot does not serve the zone: %v\n%s", err, said.String())
	}
	return n
}

// Has returns the TXT records at a name.
func (n *NameServer) Has(t *testing.T, name string) (texts []string) {
	t.Helper()
	answer, _, err := new(dns.Client).Exchange(new(dns.Msg).SetQuestion(dns.Fqdn(name), dns.TypeTXT), n.Address)
	if err != nil {
		t.Fatal(err)
	}
	for _, rr := range answer.Answer {
		if text, ok := rr.(*dns.TXT); ok {
			texts = append(texts, strings.Join(text.Txt, ""))
		}
	}
	return texts
}
