// Package pgtest gives tests a real PostgreSQL: a temporary server started from the binaries on the
// machine, and a fresh database for each test.
//
// Tests create their databases on the running server of TEST_DATABASE_URL. test/report starts a
// server for each run. Without it, each test process starts a server. If PostgreSQL is not
// installed, tests are skipped, or fail with CI=true.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/testkit/ramdisk"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// Server is a running PostgreSQL.
type Server struct {
	url     *url.URL // of a database for administration
	keeper  *pipes   // the server runs until these are closed, also by the garbage collector: keep them
	bouncer *pipes   // likewise
	home    *home    // nil for a server of TEST_DATABASE_URL
	copied  string   // options for copying a database
}

// These are the servers of this process. Each is started once and ends with the process (see
// launch). The server of benchmarks is on the disk, because they measure it.
var (
	ofTests      = sync.OnceValues(func() (*Server, error) { return start(ramdisk.Dir()) })
	ofBenchmarks = sync.OnceValues(func() (*Server, error) { return start("") })
)

// Start returns the server of this test process. If PostgreSQL is not installed, it skips the test,
// or fails it with CI=true.
func Start(tb testing.TB) *Server {
	tb.Helper()
	shared := ofTests
	if _, measured := tb.(*testing.B); measured {
		shared = ofBenchmarks
	}
	s, err := shared()
	return s.orSkip(tb, err)
}

// StartOwn returns a server that only the caller uses, with settings such as "name=value". The
// caller may stop and start it. Committed data survives every kind of stop. The server ends with
// the process.
func StartOwn(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	s, err := launch(ramdisk.Dir(), settings...)
	tb.Cleanup(func() { runtime.KeepAlive(s) }) // garbage collection of s ends the server
	return s.orSkip(tb, err)
}

func (s *Server) orSkip(tb testing.TB, err error) *Server {
	tb.Helper()
	switch {
	case err == nil:
		return s
	case os.Getenv("CI") == "true":
		tb.Fatalf("pgtest: %v", err)
	default:
		tb.Skipf("pgtest: %v (install the postgresql package, or set TEST_DATABASE_URL)", err)
	}
	return nil
}

// Mode is the pg_ctl mode for stopping a server of StartOwn. The value is the signal.
type Mode string

const (
	Fast      Mode = "INT"  // transactions are rolled back and clients get an error
	Immediate Mode = "QUIT" // like a crash; the next start recovers
	Kill      Mode = "KILL" // kills the postmaster; its processes end a moment later
)

// Stop stops a server of StartOwn. It returns when the server's processes have ended.
func (s *Server) Stop(m Mode) error { return s.keeper.tell(string(m)) }

// Start starts the server again on the same port. It returns when the server accepts connections.
func (s *Server) Start() error {
	if err := s.keeper.tell("start"); err != nil {
		return err
	}
	return s.wait()
}

// Restart stops and starts the server.
func (s *Server) Restart(m Mode) error {
	if err := s.Stop(m); err != nil {
		return err
	}
	return s.Start()
}

func start(dir string) (*Server, error) {
	if given := os.Getenv("TEST_DATABASE_URL"); given != "" {
		u, err := url.Parse(given)
		if err != nil {
			return nil, fmt.Errorf("TEST_DATABASE_URL: %w", err)
		}
		s := &Server{url: u}
		return s, s.learn()
	}
	return launch(dir, "synchronous_commit=off")
}

// fileCopy is the first version with STRATEGY FILE_COPY, which is much faster than writing each
// page of a copy to the log. Earlier versions always copy files.
const fileCopy = 150000

// learn asks the server for its version and sets copied.
func (s *Server) learn() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := pgx.Connect(ctx, s.url.String())
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	var version int
	err = c.QueryRow(ctx, "SELECT current_setting('server_version_num')::int").Scan(&version)
	if version >= fileCopy {
		s.copied = " STRATEGY FILE_COPY"
	}
	return err
}

// Database creates an empty database and returns its URL. The database is dropped at the end of the
// test.
func (s *Server) Database(tb testing.TB) string {
	tb.Helper()
	return s.create(tb, "CREATE DATABASE %s"+s.copied)
}

// Template calls fill with the URL of a new database. It returns a function that creates copies of
// that database while the test runs. fill must close its connections.
func (s *Server) Template(tb testing.TB, fill func(url string)) (database func(testing.TB) string) {
	tb.Helper()
	url := s.Database(tb)
	fill(url)
	copied := "CREATE DATABASE %s TEMPLATE " + pgx.Identifier{path.Base(strings.Split(url, "?")[0])}.Sanitize() +
		s.copied
	return func(tb testing.TB) string {
		tb.Helper()
		return s.create(tb, copied)
	}
}

func (s *Server) create(tb testing.TB, statement string) (url string) {
	tb.Helper()
	name := pgx.Identifier{secrets.ID("mcp_authd_test_")}
	if err := s.Exec(fmt.Sprintf(statement, name.Sanitize())); err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	tb.Cleanup(func() {
		if err := s.Exec("DROP DATABASE " + name.Sanitize() + " WITH (FORCE)"); err != nil {
			tb.Errorf("pgtest: %v", err)
		}
	})
	return s.database(name[0])
}

func (s *Server) database(name string) string {
	u := *s.url
	u.Path = "/" + name
	return u.String()
}

// URL returns the URL of the database postgres. Tests that promote standbys use it, because they
// could not drop another database at their end.
func (s *Server) URL() string { return s.url.String() }

// Host returns the server's address in the form of a URL host.
func (s *Server) Host() string { return s.url.Host }

// Exec runs a statement in the database postgres as superuser.
func (s *Server) Exec(sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := pgx.Connect(ctx, s.url.String())
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, sql)
	return err
}

// WaitFor waits until a query that returns one boolean returns true.
func (s *Server) WaitFor(sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*wait.Bound)
	defer cancel()
	c, err := pgx.Connect(ctx, s.url.String())
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	done := false
	if !wait.Poll(wait.Bound, func() bool { err = c.QueryRow(ctx, sql).Scan(&done); return done || err != nil }) {
		err = errors.New("it has not given true")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}
