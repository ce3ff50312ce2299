package installation

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestInsteadOf checks the advice for an address that cannot be listened on (DL-01).
func TestInsteadOf(t *testing.T) {
	for _, c := range []struct {
		name, address, key, want string
		err                      error
	}{
		{"DL-01: 443 without the right", ":443", "listen", "setcap cap_net_bind_service=+ep", syscall.EACCES},
		{"DL-01: 443 is taken", ":443", "listen", "end what has the port (ss -ltnp names it), or put it in front",
			syscall.EADDRINUSE},
		{"DL-01: 80 is taken", ":80", ACMEListen, `set tls.acme.http_listen to ""`, syscall.EADDRINUSE},
		{"DL-01: another port", ":8414", "listen", "set another address with listen", syscall.EADDRINUSE},
		{"DL-01: no address of this machine", "192.0.2.1:443", "listen", "set another address", syscall.EADDRNOTAVAIL},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := fmt.Errorf("bind: %w", c.err)
			if got := insteadOf(err, c.address, c.key); !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestTakenPort checks that a server that cannot listen creates nothing.
func TestTakenPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := filepath.Join(t.TempDir(), "data")
	h, _ := host(t, "MCP_AUTHD_LISTEN="+l.Addr().String())
	err = under(t, h, dir).OpenToServe(t.Context())
	if err == nil || !strings.Contains(err.Error(), "cannot listen on "+l.Addr().String()) {
		t.Errorf("DL-01: got %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("DL-01: a data directory was made: %v", err)
	}
}
