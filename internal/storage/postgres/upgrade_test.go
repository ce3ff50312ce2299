package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/migration"
	"github.com/mcp-authd/mcp-authd/internal/storage/storagetest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
)

func TestUpgradeFromEarlierSchemas(t *testing.T) {
	for _, from := range []int{1, 4} {
		t.Run(strconv.Itoa(from), func(t *testing.T) { upgradeFrom(t, from) })
	}
}

func upgradeFrom(t *testing.T, from int) {
	ctx, url := context.Background(), pgtest.Start(t).Database(t)
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	exec := func(query string, args ...any) {
		t.Helper()
		for i := range args {
			query = strings.Replace(query, "?", fmt.Sprintf("$%d", i+1), 1)
		}
		if _, err := conn.Exec(ctx, query, args...); err != nil {
			t.Fatalf("%v: %s", err, query)
		}
	}
	steps, err := migration.Steps(migration.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	exec(versionTable)
	exec(lockRow)
	for _, s := range steps[:from] {
		exec(s.SQL)
		exec("INSERT INTO schema_version (version, name, applied_at) VALUES (?, ?, 0)", s.Version, s.Name)
	}
	storagetest.Upgrade(t, exec, func() storage.Store { return open(t, url, Options{}) })
}

// A replica of this version keeps running, and restarts, after a newer one has added optional
// schema.
func TestANewerSchemaThatOnlyAddsIsServed(t *testing.T) {
	ctx, url := context.Background(), pgtest.Start(t).Database(t)
	s := open(t, url, Options{})
	defer s.Close()
	next := migration.Step{Version: len(s.steps) + 1, Needs: len(s.steps)}
	for _, q := range []struct {
		sql string
		arg any
	}{
		{"INSERT INTO schema_version (version, name, applied_at) VALUES ($1, 'next', 0)", next.Version},
		{"UPDATE settings SET value = $1 WHERE name = 'schema_needs'", (migration.Applied{}).Note(next)},
	} {
		if _, err := s.pool.Exec(ctx, q.sql, q.arg); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Ready(ctx); err != nil {
		t.Errorf("Ready: %v", err)
	}
	again, err := Open(ctx, url, Options{})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	again.Close()
}
