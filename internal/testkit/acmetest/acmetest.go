// Package acmetest runs Pebble, the test certificate authority of Let's Encrypt, with a name server
// that the test controls.
package acmetest

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/mcp-authd/mcp-authd/internal/testkit/certtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// pebble returns the path of Pebble. The module test/pebble pins its version.
func pebble(tb testing.TB) string {
	tb.Helper()
	return program.BuildOrSkip(tb, "test/pebble", "github.com/letsencrypt/pebble/v2/cmd/pebble")
}

// Authority is a certificate authority on loopback.
type Authority struct {
	Directory string         // URL of its directory
	RootsFile string         // PEM file for verifying the certificate of the directory
	Roots     *x509.CertPool // the content of RootsFile
	manage    string
	names     *names
}

// Config configures an authority.
type Config struct {
	HTTPPort, TLSPort int           // where it sends the requests of its challenges
	Validity          time.Duration // of its certificates. Default: 90 days
	Blocked           []string      // names that it refuses
	Names             *NameServer   // the name server that it uses; nil: one that resolves every name to this machine
}

// Start starts an authority that ends with the test. Every name resolves to this machine until
// Forget.
func Start(t *testing.T, c Config) *Authority {
	t.Helper()
	dir := t.TempDir()
	certtest.WritePair(t, dir, "localhost")
	cert := filepath.Join(dir, "localhost.crt")
	listen, manage := nettest.For(t), nettest.For(t)
	if c.Validity == 0 {
		c.Validity = 90 * 24 * time.Hour
	}
	config, err := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress": listen, "managementListenAddress": manage,
		"certificate": cert, "privateKey": filepath.Join(dir, "localhost.key"),
		"httpPort": c.HTTPPort, "tlsPort": c.TLSPort, "domainBlocklist": c.Blocked, "keyAlgorithm": "ecdsa",
		"retryAfter": map[string]int{"authz": 1, "order": 1},
		"profiles": map[string]any{
			"default": map[string]any{"description": "of the test", "validityPeriod": int(c.Validity / time.Second)},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "pebble.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	a := &Authority{
		Directory: "https://localhost:" + strconv.Itoa(Port(t, listen)) + "/dir",
		RootsFile: cert, Roots: x509.NewCertPool(),
		manage: "https://localhost:" + strconv.Itoa(Port(t, manage)), names: serveNames(t),
	}
	a.Roots.AppendCertsFromPEM(pem)
	names := a.names.address
	if c.Names != nil {
		names = c.Names.Address
	}
	cmd := exec.Command(pebble(t), "-config", file, "-dnsserver", names)
	cmd.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=0", "PEBBLE_AUTHZREUSE=0")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	wait.Success(t, "Pebble answers", func() error { _, err := a.get(a.Directory); return err })
	return a
}

func (a *Authority) get(url string) ([]byte, error) {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.Roots}}}
	defer client.CloseIdleConnections()
	resp, err := client.Get(url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(io.LimitReader(resp.Body, 1<<20))
}

// Issued returns the roots for verifying certificates that the authority issues.
func (a *Authority) Issued(t *testing.T) *x509.CertPool {
	t.Helper()
	pem, err := a.get(a.manage + "/roots/0")
	pool := x509.NewCertPool()
	if err != nil || !pool.AppendCertsFromPEM(pem) {
		t.Fatalf("the root of Pebble: %v: %s", err, pem)
	}
	return pool
}

// Forget makes a name unknown to the authority. Know reverts this.
func (a *Authority) Forget(name string) { a.names.set(name, true) }

// Know makes a name resolve to this machine.
func (a *Authority) Know(name string) { a.names.set(name, false) }

// names is a name server that resolves all names to 127.0.0.1, except the unknown ones.
type names struct {
	address string

	mu      sync.Mutex // guards unknown
	unknown map[string]bool
}

func serveNames(t *testing.T) *names {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // Pebble uses DNS over TCP
	if err != nil {
		t.Fatal(err)
	}
	n := &names{address: l.Addr().String(), unknown: make(map[string]bool)}
	server := &dns.Server{Listener: l, Handler: n}
	go server.ActivateAndServe()
	t.Cleanup(func() { _ = server.Shutdown() })
	return n
}

func (n *names) set(name string, unknown bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.unknown[dns.Fqdn(name)] = unknown
}

// ServeDNS implements dns.Handler.
func (n *names) ServeDNS(w dns.ResponseWriter, asked *dns.Msg) {
	answer := new(dns.Msg).SetReply(asked)
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, q := range asked.Question {
		switch {
		case n.unknown[q.Name]:
			answer.Rcode = dns.RcodeNameError
		case q.Qtype == dns.TypeA:
			answer.Answer = append(answer.Answer, &dns.A{
				Hdr: dns.RR_Header{Name: q.Name, Rrtype: dns.TypeA, Class: dns.ClassINET}, A: net.IPv4(127, 0, 0, 1),
			})
		}
	}
	_ = w.WriteMsg(answer)
}

// Port returns the port of an address.
func Port(t *testing.T, address string) int {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
