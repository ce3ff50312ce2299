package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// output collects the output of a server while a test reads it.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// serving runs serve on a database until the test ends, or until stop is called, which returns its
// exit code.
func serving(t *testing.T, database string) (log *output, address string, stop func() int) {
	t.Helper()
	log, address = &output{}, nettest.For(t)
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"serve"}, std{strings.NewReader(""), log, log, []string{
			"HOME=" + t.TempDir(), "MCP_AUTHD_DATABASE_URL=" + database, "MCP_AUTHD_LISTEN=" + address,
			"MCP_AUTHD_MANAGEMENT_LISTEN=",
			"MCP_AUTHD_SECRET_KEY=0123456789012345678901234567890123456789", "MCP_AUTHD_LOG_FORMAT=json",
		}})
	}()
	var once sync.Once
	got := -1
	stop = func() int {
		once.Do(func() { cancel(); got = <-code })
		return got
	}
	t.Cleanup(func() { stop() })
	return log, address, stop
}

// inTime is wait.Until, but shows the log of a server if the event does not happen.
func inTime(t *testing.T, log *output, what string, is func() bool) {
	t.Helper()
	wait.Success(t, what, func() error {
		if is() {
			return nil
		}
		return errors.New(log.String())
	})
}

func readyAt(address string) bool {
	resp, err := http.Get("http://" + address + "/readyz")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// TestServeWaitsForItsDatabase checks that a server waits for PostgreSQL (issue 12, 2.6).
func TestServeWaitsForItsDatabase(t *testing.T) {
	server := pgtest.StartOwn(t)
	database := server.URL()
	if err := server.Stop(pgtest.Fast); err != nil {
		t.Fatal(err)
	}
	log, address, stop := serving(t, database)
	inTime(t, log, "it says that it waits", func() bool {
		return strings.Contains(log.String(), "waiting for the database") &&
			strings.Contains(log.String(), server.Host()) && strings.Contains(log.String(), "SIGTERM")
	})
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	inTime(t, log, "it begins when the database does", func() bool { return readyAt(address) })
	if code := stop(); code != exitOK {
		t.Errorf("it ended with %d\n%s", code, log)
	}
}

func TestServeThatWaitsCanBeStopped(t *testing.T) {
	log, _, stop := serving(t, "postgres://u@127.0.0.1:1/db?sslmode=disable")
	inTime(t, log, "it says that it waits",
		func() bool { return strings.Contains(log.String(), "waiting for the database") })
	if code := stop(); code != exitOK {
		t.Errorf("it ended with %d\n%s", code, log)
	}
}

// TestServeDoesNotWaitForWhatOnlyAnOperatorMends checks that a permanent error ends the start at
// once.
func TestServeDoesNotWaitForWhatOnlyAnOperatorMends(t *testing.T) {
	server := pgtest.Start(t)
	missing, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	missing.Path = "/missing"
	tls := *missing
	tls.Path, tls.RawQuery = "/postgres", "sslmode=require"
	for name, database := range map[string]string{
		"an unknown database": missing.String(), "TLS that it has not": tls.String(),
	} {
		code, _, errs := runs(t,
			[]string{"HOME=" + t.TempDir(), "MCP_AUTHD_DATABASE_URL=" + database,
				"MCP_AUTHD_SECRET_KEY=0123456789012345678901234567890123456789"}, "serve")
		if code != exitFailure || !strings.Contains(errs, "check database.url") {
			t.Errorf("%s: got %d %s", name, code, errs)
		}
	}
}

// TestServeWithAWrongPassword checks that a wrong password ends the start. The message must name
// the problem without the password.
func TestServeWithAWrongPassword(t *testing.T) {
	server := pgtest.StartOwn(t)
	for _, sql := range []string{
		"SET password_encryption = 'scram-sha-256'", "CREATE ROLE authd LOGIN PASSWORD 'right'",
		`DO $$ BEGIN EXECUTE format('COPY (VALUES (''host all authd 127.0.0.1/32 scram-sha-256''), (''host all all 127.0.0.1/32 trust'')) TO %L',
			current_setting('hba_file')); END $$`,
		"SELECT pg_reload_conf()", "GRANT ALL ON SCHEMA public TO authd",
	} {
		if err := server.Exec(sql); err != nil {
			t.Fatal(err)
		}
	}
	with := func(user *url.Userinfo) string {
		u, err := url.Parse(server.URL())
		if err != nil {
			t.Fatal(err)
		}
		u.User = user
		return u.String()
	}
	for name, c := range map[string]struct {
		user *url.Userinfo
		want string
	}{
		"wrong password": {url.UserPassword("authd", "wrong-secret"), "password authentication failed"},
		"no password":    {url.User("authd"), "password"},
		"unknown user":   {url.UserPassword("stranger", "wrong-secret"), `role "stranger" does not exist`},
	} {
		log, _, stop := serving(t, with(c.user))
		inTime(t, log, name+": it ends",
			func() bool { return strings.Contains(log.String(), "check the user and the password in database.url") })
		if code := stop(); code != exitFailure || !strings.Contains(log.String(), c.want) ||
			strings.Contains(log.String(), "waiting for") ||
			strings.Contains(log.String(), "wrong-secret") {
			t.Errorf("%s: got %d, want %q\n%s", name, code, c.want, log)
		}
	}
	log, address, _ := serving(t, with(url.UserPassword("authd", "right")))
	inTime(t, log, "it begins with the right password", func() bool { return readyAt(address) })
}

// TestReadyAgainBehindPgBouncer checks that a restarted PostgreSQL is used again as soon as
// PgBouncer reconnects, without a restart of the server (issue 12, 2.6).
func TestReadyAgainBehindPgBouncer(t *testing.T) {
	server := pgtest.StartOwn(t)
	through := server.Bouncer(t)
	log, address, _ := serving(t, through(server.URL()))
	inTime(t, log, "it begins", func() bool { return readyAt(address) })
	if err := server.Stop(pgtest.Fast); err != nil {
		t.Fatal(err)
	}
	inTime(t, log, "it is not ready without a database", func() bool { return !readyAt(address) })
	inTime(t, log, "PgBouncer tries, and fails", func() bool {
		var refused *pgconn.PgError
		return errors.As(ask(t, through(server.URL())), &refused)
	})
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	inTime(t, log, "it is ready again", func() bool { return readyAt(address) })
}

// ask queries a database over its own connection.
func ask(t *testing.T, database string) error {
	ctx, cancel := context.WithTimeout(t.Context(), wait.Bound)
	defer cancel()
	c, err := pgx.Connect(ctx, database)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	return c.Ping(ctx)
}
