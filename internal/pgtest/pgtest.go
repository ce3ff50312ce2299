// Package pgtest gives tests a real PostgreSQL: a throw-away server started from
// the binaries on the machine, one for each test process, and a fresh database for
// each test.
//
// TEST_DATABASE_URL names a running server instead, on which the tests may create
// databases. Where there is neither, tests are skipped, but never under CI=true.
package pgtest

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
)

// Server is a running PostgreSQL.
type Server struct {
	url   *url.URL  // of a database from which others can be created
	alive io.Closer // the server runs until this is closed, also by the collector: keep it
}

// shared starts the server of this process once. It ends with the process (see launch).
var shared = sync.OnceValues(start)

// Start returns the server of this test process. Without a PostgreSQL it skips the
// test, or fails it when CI is "true".
func Start(tb testing.TB) *Server {
	tb.Helper()
	s, err := shared()
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

func start() (*Server, error) {
	if given := os.Getenv("TEST_DATABASE_URL"); given != "" {
		u, err := url.Parse(given)
		if err != nil {
			return nil, fmt.Errorf("TEST_DATABASE_URL: %w", err)
		}
		return &Server{url: u}, nil
	}
	return launch()
}

// Database creates an empty database, which goes when the test ends, and returns
// its URL.
func (s *Server) Database(tb testing.TB) string {
	tb.Helper()
	name := pgx.Identifier{secrets.ID("mcp_authd_test_")}
	if err := s.exec("CREATE DATABASE " + name.Sanitize()); err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	tb.Cleanup(func() {
		if err := s.exec("DROP DATABASE " + name.Sanitize() + " WITH (FORCE)"); err != nil {
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

func (s *Server) exec(sql string) error {
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
