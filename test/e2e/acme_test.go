package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
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

// TestCertificateOverReplicas: the authority contacts one replica for the challenge of another.
// That one retries after a failure, and both replicas serve the resulting certificate (DL-01).
func TestCertificateOverReplicas(t *testing.T) {
	lane.Long(t, "internal/acme gets certificates for one server")
	t.Parallel()
	const name = "auth.example.com"
	front, frontHTTP, behind := nettest.For(t), nettest.For(t), nettest.For(t)
	authority := acmetest.Start(t, acmetest.Config{
		HTTPPort: acmetest.Port(t, frontHTTP), TLSPort: acmetest.Port(t, front),
	})
	dir := t.TempDir()
	database := pgtest.Start(t).Database(t)
	start := func(listen, plain string) *logtest.Buffer {
		t.Helper()
		cmd := exec.Command(program.Authd(t), "serve", "--domain", name, "--listen", listen)
		cmd.Env = append(os.Environ(),
			"HOME="+dir, "MCP_AUTHD_DATA_DIR="+t.TempDir(), "MCP_AUTHD_SECRET_KEY="+strings.Repeat("k", 40),
			"MCP_AUTHD_DATABASE_URL="+database, "MCP_AUTHD_MANAGEMENT_LISTEN=",
			"MCP_AUTHD_TLS_ACME_DIRECTORY="+authority.Directory, "MCP_AUTHD_TLS_ACME_ROOTS="+authority.RootsFile,
			"MCP_AUTHD_TLS_ACME_HTTP_LISTEN="+plain)
		var log logtest.Buffer
		cmd.Stderr = &log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended; Wait returns the error
			if err := cmd.Wait(); err != nil {
				t.Errorf("a replica did not exit with 0: %v\n%s", err, log.String())
			}
		})
		return &log
	}
	until := func(what string, is func() error) {
		t.Helper()
		if err := wait.Retry(3*time.Minute, is); err != nil { // authority and servers retry
			t.Fatalf("DL-01: %s: %v", what, err)
		}
	}
	said := func(log *logtest.Buffer, want string) func() error {
		return func() error {
			if !strings.Contains(log.String(), want) {
				return fmt.Errorf("the log lacks %q:\n%s", want, log.String())
			}
			return nil
		}
	}
	atBehind := start(behind, nettest.For(t))
	until("nobody is where the name leads", said(atBehind, "the first certificate is missing"))
	start(front, frontHTTP) // waits for the running order
	until("the replica behind gets the certificate", said(atBehind, "got a certificate"))
	roots := authority.Issued(t)
	for what, address := range map[string]string{"the replica behind": behind, "the replica in front": front} {
		until(what, func() error { return metadataOver(address, name, roots) })
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ask, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+frontHTTP+"/account", nil)
	if err != nil {
		t.Fatal(err)
	}
	ask.Host = name
	resp, err := client.Do(ask)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	got := resp.Header.Get("Location")
	if resp.StatusCode != http.StatusPermanentRedirect || got != "https://"+name+"/account" {
		t.Errorf("DL-01: over http: %d %s", resp.StatusCode, got)
	}
}

// metadataOver reads the server's metadata by its name, at an address.
func metadataOver(address, name string, roots *x509.CertPool) error {
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get("https://" + name + "/.well-known/oauth-authorization-server")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && (resp.ProtoMajor != 2 || !strings.Contains(string(body), `"issuer":"https://`+name+`"`)) {
		err = fmt.Errorf("got %s %s %s", resp.Proto, resp.Status, body)
	}
	return err
}
