//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// bouncerConfig allows few connections to the server, so that each transaction may use a different
// one.
const bouncerConfig = `[databases]
* = host=127.0.0.1 port=%s user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
max_client_conn = 500
server_lifetime = 2
server_login_retry = 1
`

// Bouncer starts a PgBouncer in transaction mode in front of the server. It returns a function that
// converts a database URL to one through PgBouncer. PgBouncer ends with the process. If it is not
// installed, Bouncer skips the test, or fails it with CI=true.
func (s *Server) Bouncer(tb testing.TB) func(database string) string {
	tb.Helper()
	host, err := s.bounce()
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		tb.Fatalf("pgtest: %v", err)
	default:
		tb.Skipf("pgtest: %v (apt-get install pgbouncer)", err)
	}
	return func(database string) string {
		u, err := url.Parse(database)
		if err != nil {
			tb.Fatal(err)
		}
		u.Host = host
		return u.String()
	}
}

func (s *Server) bounce() (host string, err error) {
	bin, err := exec.LookPath("pgbouncer")
	if err != nil {
		if bin, err = exec.LookPath("/usr/sbin/pgbouncer"); err != nil {
			return "", errors.New("no PgBouncer on this machine")
		}
	}
	attr, err := unprivileged()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "pgtest")
	if err != nil {
		return "", err
	}
	if s.bouncer, host, err = s.startBouncer(bin, dir, attr); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return host, nil
}

func (s *Server) startBouncer(bin, dir string, attr *syscall.SysProcAttr) (*pipes, string, error) {
	port, err := freePort()
	if err != nil {
		return nil, "", err
	}
	ini := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(ini, fmt.Appendf(nil, bouncerConfig, s.url.Port(), port), 0o644); err != nil {
		return nil, "", err
	}
	if c := attr.Credential; c != nil {
		if err := os.Chown(dir, int(c.Uid), int(c.Gid)); err != nil {
			return nil, "", err
		}
	}
	keeper, err := keep(dir, attr, bin, ini)
	if err != nil {
		return nil, "", err
	}
	host := net.JoinHostPort("127.0.0.1", port)
	err = wait.Retry(wait.Bound, func() error {
		c, err := net.Dial("tcp", host)
		if err != nil {
			return err
		}
		return c.Close()
	})
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		return nil, "", fmt.Errorf("PgBouncer does not answer: %w\n%s", err, log)
	}
	return keeper, host, nil
}
