package postgres

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage/migration"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// before returns a connection to a database with the steps that precede the named one.
func before(t *testing.T, url, name string) *pgx.Conn {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(ctx) })
	steps, err := migration.Steps(migration.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	run := func(sql string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(ctx, sql, args...); err != nil {
			t.Fatalf("%v: %s", err, sql)
		}
	}
	run(versionTable)
	run(lockRow)
	for _, s := range steps {
		if s.Name == name {
			return conn
		}
		run(s.SQL)
		run("INSERT INTO schema_version (version, name, applied_at) VALUES ($1, $2, 0)", s.Version, s.Name)
	}
	t.Fatalf("no step has the name %s", name)
	return nil
}

const putGrant = `INSERT INTO grants (id, client_id, user_id, resource, scopes, auth_time, created_at, expires_at, code_hash, code_redirect, code_challenge, code_expires_at, sweep_at)
	VALUES ($1, 'c', 'u', 'r', '[]', 0, 0, 0, decode(md5($1), 'hex'), '', '', 0, 0)`

// Issue 12, 3.4: an index on a large table is built concurrently with its writers. Several replicas
// start at once. While one of them builds, an older writer holds a row, which the build waits for,
// and another writer writes.
func TestAConcurrentStepBlocksNoWriter(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	url := pgtest.Start(t).Database(t)
	conn := before(t, url, "grant_keys")
	// A leftover of a process that was killed during the build.
	if _, err := conn.Exec(ctx, "CREATE INDEX grants_by_client ON grants (code_redirect)"); err != nil {
		t.Fatal(err)
	}
	early, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := early.Exec(ctx, putGrant, "early"); err != nil {
		t.Fatal(err)
	}

	var replicas sync.WaitGroup
	for range 3 {
		replicas.Go(func() {
			s, err := Open(ctx, url+"&default_transaction_isolation=serializable", Options{})
			if err != nil {
				t.Errorf("Open: %v", err)
				return
			}
			s.Close()
		})
	}
	other, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(ctx)
	wait.Until(t, "the building of the index waits", func() (building bool) {
		err := other.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database()
			AND pid <> pg_backend_pid() AND query LIKE '%INDEX CONCURRENTLY%' AND wait_event_type = 'Lock')`).Scan(&building)
		if err != nil {
			t.Fatal(err)
		}
		return building
	})
	if _, err := other.Exec(ctx, "SET lock_timeout = '2s'"); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Exec(ctx, putGrant, "beside"); err != nil {
		t.Errorf("a writer while an index is built: %v", err)
	}
	if err := early.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	replicas.Wait()

	var valid int
	var def string
	err = other.QueryRow(ctx, `SELECT count(*) FILTER (WHERE i.indisvalid), max(pg_get_indexdef(i.indexrelid)) FILTER (WHERE c.relname = 'grants_by_client')
		FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relname IN ('grants_by_client', 'grants_by_pair', 'grants_status')`).Scan(&valid, &def)
	if err != nil || valid != 3 ||
		def != `CREATE INDEX grants_by_client ON public.grants USING btree (hashtext(client_id), "left"(id, 11))` {
		t.Errorf("got %d valid indexes, %s, %v", valid, def, err)
	}
}
