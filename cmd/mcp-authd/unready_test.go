package main

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/doctor"
	"github.com/mcp-authd/mcp-authd/internal/installation"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
)

// tellsUnready fails the test unless /readyz of a server turns 503 and the log gives the reason. At
// first, it may give another reason, such as a closed connection. Package authserver tests with a
// fake clock that it takes only a second.
func tellsUnready(t *testing.T, log *output, address, why string) {
	t.Helper()
	inTime(t, log, "it is not ready, and the log says "+why, func() bool {
		return !readyAt(address) && strings.Contains(log.String(), why)
	})
}

// connection returns a connection to a database, separate from the server's.
func connection(t *testing.T, database string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// TestM3NotReadyOnAReadOnlyPostgreSQL checks the behavior of a managed service whose storage is
// full (operations M3). The server reports it, and becomes ready by itself when writes are
// permitted again.
func TestM3NotReadyOnAReadOnlyPostgreSQL(t *testing.T) {
	server := pgtest.StartOwn(t)
	log, address, _ := serving(t, server.URL())
	inTime(t, log, "it begins", func() bool { return readyAt(address) })
	// Existing connections keep their settings.
	const others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
	for _, sql := range []string{"ALTER DATABASE postgres SET default_transaction_read_only = on", others} {
		if err := server.Exec(sql); err != nil {
			t.Fatal(err)
		}
	}
	tellsUnready(t, log, address, "the store cannot be written")
	if !strings.Contains(log.String(), "read-only transaction") {
		t.Errorf("the log does not say why\n%s", log)
	}
	writer := connection(t, server.URL()+"&default_transaction_read_only=off")
	if _, err := writer.Exec(t.Context(), "ALTER DATABASE postgres RESET default_transaction_read_only"); err != nil {
		t.Fatal(err)
	}
	inTime(t, log, "it is ready again", func() bool { return readyAt(address) })
}

// TestM5NotReadyWithoutASlot checks that others hold every connection that PostgreSQL permits
// (operations M5).
func TestM5NotReadyWithoutASlot(t *testing.T) {
	server := pgtest.StartOwn(t)
	if err := server.Exec("CREATE ROLE few LOGIN; GRANT ALL ON SCHEMA public TO few"); err != nil {
		t.Fatal(err)
	}
	database := strings.Replace(server.URL(), "postgres@", "few@", 1)
	log, address, _ := serving(t, database)
	inTime(t, log, "it begins", func() bool { return readyAt(address) })
	const theirs = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'few'"
	const limit = 3
	if err := errors.Join(server.Exec("ALTER ROLE few CONNECTION LIMIT 3"), server.Exec(theirs)); err != nil {
		t.Fatal(err)
	}
	var held []*pgx.Conn
	inTime(t, log, "all connections are held", func() bool {
		if c, err := pgx.Connect(t.Context(), database); err == nil {
			held = append(held, c)
		} else if err := server.Exec(theirs + " AND application_name = 'mcp-authd'"); err != nil { // it was first
			t.Fatal(err)
		}
		return len(held) == limit
	})
	tellsUnready(t, log, address, "not ready")
	for _, c := range held {
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	inTime(t, log, "it is ready again", func() bool { return readyAt(address) })
}

// TestM5NotReadyWithAnExhaustedPool checks a statement that waits for a lock with the server's only
// connection (operations M5).
func TestM5NotReadyWithAnExhaustedPool(t *testing.T) {
	database := pgtest.StartOwn(t).URL()
	log, address, _ := serving(t, database+"&pool_max_conns=1")
	inTime(t, log, "it begins", func() bool { return readyAt(address) })
	blocker := connection(t, database)
	if _, err := blocker.Exec(t.Context(), "BEGIN; LOCK TABLE clients IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	answered := make(chan int, 1)
	go func() {
		resp, err := http.PostForm("http://"+address+"/token",
			url.Values{"grant_type": {"refresh_token"}, "refresh_token": {"x"}, "client_id": {"x"}})
		if err != nil {
			answered <- 0
			return
		}
		defer resp.Body.Close()
		answered <- resp.StatusCode
	}()
	waits := connection(t, database)
	inTime(t, log, "a statement waits for the lock", func() bool {
		var n int
		err := waits.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE NOT granted").Scan(&n)
		return err == nil && n > 0
	})
	tellsUnready(t, log, address, "the store has not answered within a second")
	if _, err := blocker.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	inTime(t, log, "it is ready again", func() bool { return readyAt(address) })
	if got := <-answered; got/100 != 4 {
		t.Errorf("the request that waited: got %d, want that it is refused", got)
	}
}

// TestM2AClockAwayFromTheDatabases checks that doctor and the start of a server compare this
// machine's clock with that in a real database, which differs here (operations M2).
func TestM2AClockAwayFromTheDatabases(t *testing.T) {
	server := pgtest.StartOwn(t)
	for _, c := range []struct {
		ahead, doctor, log string
		serves             bool
	}{
		{"0 seconds", "ok clock the clock of this machine is that of the database", "", true},
		{"95 seconds", "warning clock the clock of this machine and that of the database differ by 1m3",
			`"database_ahead_ms":9`, true},
		{"-95 seconds", "warning clock the clock of this machine and that of the database differ by 1m3",
			`"database_ahead_ms":-9`, true},
		{"690 seconds", "fail clock the clock of this machine and that of the database differ by 11m",
			"(the database's is ahead)", false},
		{"-690 seconds", "fail clock the clock of this machine and that of the database differ by 11m",
			"(the database's is behind)", false},
	} {
		t.Run(c.ahead, func(t *testing.T) {
			database := skewed(t, server, c.ahead)
			found := examined(t, database)
			if !strings.Contains(found, c.doctor) || strings.Count(found, "clock the clock") != 1 {
				t.Errorf("doctor: got %s, want %q", found, c.doctor)
			}
			log, address, stop := serving(t, database)
			if c.serves {
				inTime(t, log, "it begins", func() bool { return readyAt(address) })
			} else {
				inTime(t, log, "it ends",
					func() bool { return strings.Contains(log.String(), "differ by 11m") })
			}
			if code := stop(); (code == exitOK) != c.serves || !strings.Contains(log.String(), c.log) {
				t.Errorf("serve: got %d, want %q\n%s", code, c.log, log)
			}
		})
	}
}

// examined migrates a database, and returns the findings of doctor as text.
func examined(t *testing.T, database string) string {
	t.Helper()
	h := installation.Host{Environ: []string{
		"HOME=" + t.TempDir(), "MCP_AUTHD_DATABASE_URL=" + database,
		"MCP_AUTHD_SECRET_KEY=0123456789012345678901234567890123456789",
	}}
	l, err := config.Load(config.Source{Environ: h.Environ})
	if err != nil {
		t.Fatal(err)
	}
	s, err := installation.Quiet(l, h).OpenDatabase(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	var b strings.Builder
	for _, f := range doctor.Run(t.Context(), "", "", h) {
		b.WriteString(f.Level + " " + f.Check + " " + f.What + "\n")
	}
	return b.String()
}

// skewed returns the URL of a database whose clock is ahead.
func skewed(t *testing.T, server *pgtest.Server, ahead string) string {
	t.Helper()
	database := server.Database(t)
	_, err := connection(t, database).Exec(t.Context(), `CREATE SCHEMA skewed; CREATE FUNCTION skewed.clock_timestamp() RETURNS timestamptz
		LANGUAGE sql VOLATILE AS $$ SELECT pg_catalog.clock_timestamp() + interval '`+ahead+`' $$`)
	if err != nil {
		t.Fatal(err)
	}
	return database + "&search_path=" + url.QueryEscape("public,skewed,pg_catalog")
}
