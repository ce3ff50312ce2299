package e2e

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/acmetest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
	"github.com/mcp-authd/mcp-authd/internal/testkit/logtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// TestCertificateOverDNS: a replica that is killed during an order does not prevent another from
// getting the certificate. It covers all names of the domain, through a record at a name server
// (DL-01).
func TestCertificateOverDNS(t *testing.T) {
	lane.Long(t, "internal/acme gets certificates by DNS for one server")
	t.Parallel()
	const name = "auth.dns.example.com"
	names := acmetest.StartNames(t, "dns.example.com")
	authority := acmetest.Start(t, acmetest.Config{Names: names})
	hole, begun := silence(t)
	secret := filepath.Join(t.TempDir(), "dns.key")
	if err := os.WriteFile(secret, []byte(names.Secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	database, metrics := pgtest.Start(t).Database(t), nettest.For(t)
	start := func(listen, server, management string) (*exec.Cmd, *logtest.Buffer) {
		t.Helper()
		cmd := exec.Command(program.Authd(t), "serve", "--listen", listen)
		cmd.Env = append(os.Environ(),
			"HOME="+t.TempDir(), "MCP_AUTHD_DATA_DIR="+t.TempDir(), "MCP_AUTHD_SECRET_KEY="+strings.Repeat("k", 40),
			"MCP_AUTHD_ISSUER=https://"+name, "MCP_AUTHD_DATABASE_URL="+database,
			"MCP_AUTHD_MANAGEMENT_LISTEN="+management, "MCP_AUTHD_TLS_ACME_DOMAINS=*.dns.example.com",
			"MCP_AUTHD_TLS_ACME_DIRECTORY="+authority.Directory, "MCP_AUTHD_TLS_ACME_ROOTS="+authority.RootsFile,
			"MCP_AUTHD_TLS_ACME_HTTP_LISTEN=", "MCP_AUTHD_TLS_ACME_DNS_PROVIDER=rfc2136",
			"MCP_AUTHD_TLS_ACME_DNS_SERVER="+server, "MCP_AUTHD_TLS_ACME_DNS_KEY_NAME="+names.KeyName,
			"MCP_AUTHD_TLS_ACME_DNS_SECRET_FILE="+secret, "MCP_AUTHD_TLS_ACME_DNS_RESOLVERS="+names.Address)
		log := new(logtest.Buffer)
		cmd.Stderr = log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
			_ = cmd.Wait()
		})
		return cmd, log
	}
	first, _ := start(nettest.For(t), hole, "")
	select {
	case <-begun:
	case <-time.After(3 * time.Minute):
		t.Fatal("DL-01: the first replica does not begin")
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	listen := nettest.For(t)
	_, log := start(listen, names.Address, metrics)
	err := wait.Retry(4*time.Minute, func() error { // it waits until the first lease has expired
		if !strings.Contains(log.String(), "got a certificate") {
			return fmt.Errorf("the log lacks it:\n%s", log.String())
		}
		return metadataOver(listen, name, authority.Issued(t))
	})
	if err != nil {
		t.Fatalf("DL-01: the second replica: %v", err)
	}
	if strings.Contains(log.String(), names.Secret) {
		t.Error("DL-01: the key of the name server is in the log")
	}
	const series = `mcp_authd_certificate_remaining_seconds{domain="*.dns.example.com"} 7.`
	wait.Success(t, "DL-01: the metrics have the certificate", func() error { return scraped(metrics, series) })
}

// silence starts a server that accepts connections but sends nothing. It closes begun at the first
// connection.
func silence(t *testing.T) (address string, begun <-chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	first := make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
			if n == 0 {
				close(first)
			}
		}
	}()
	t.Cleanup(func() { l.Close() })
	return l.Addr().String(), first
}

// scraped returns an error unless a line of the metrics begins with begin.
func scraped(address, begin string) error {
	resp, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), begin) {
			return nil
		}
	}
	return fmt.Errorf("no line begins with %s", begin)
}
