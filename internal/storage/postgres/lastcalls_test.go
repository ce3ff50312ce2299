package postgres

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
)

// PE-09: a page of connections reads the last call of each grant by its key, with or without
// statistics on the tables.
func TestLastCallsAreReadByTheirKey(t *testing.T) {
	ctx, url := t.Context(), pgtest.Start(t).Database(t)
	s := open(t, url, Options{})
	defer s.Close()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(`INSERT INTO grants (id, client_id, user_id, resource, scopes, auth_time, created_at, expires_at, code_hash, code_redirect, code_challenge, code_expires_at, code_used_at, sweep_at)
		SELECT 'grt_' || lpad(n::text, 18, '0'), 'c' || n, 'usr_1', 'r', '[]', 0, 0, 1e15, decode(lpad(n::text, 64, '0'), 'hex'), '', '', 1e15, 1, 1e15 FROM generate_series(1, 5000) n`)
	exec("INSERT INTO last_calls (grant_id, tool, called_at, kept_until) SELECT id, 'read', 1, 1e15 FROM grants")
	exec("SELECT set_config('enable_sort', 'off', false), set_config('jit', 'off', false)") // like inOrder
	for _, known := range []string{"SELECT 1", "ANALYZE"} {
		exec(known)
		rows, err := conn.Query(ctx, "EXPLAIN "+pageConnections+pageOrder, "usr_1", 2, 6)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		plan := strings.Join(lines, "\n")
		if !strings.Contains(plan, "Index Scan using last_calls_pkey") || strings.Contains(plan, "Scan on last_calls") {
			t.Errorf("after %s: the table is read otherwise than by its key:\n%s", known, plan)
		}
	}
}
