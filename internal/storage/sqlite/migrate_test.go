package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/migration"
	"github.com/mcp-authd/mcp-authd/internal/storage/storagetest"
)

func TestEightOpenersOfOneNewFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			s, err := Open(context.Background(), path, Options{})
			if err != nil {
				t.Error(err)
				return
			}
			if err := errors.Join(s.Ready(context.Background()), s.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// A new database logs one line, an upgrade one for each step.
func TestMigrationLog(t *testing.T) {
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	s, err := Open(t.Context(), Memory, Options{Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	steps := len(s.steps)
	if got := log.String(); strings.Count(got, "\n") != 1 ||
		!strings.Contains(got, fmt.Sprintf(`msg="schema created" version=%d`, steps)) {
		t.Errorf("a new database: got\n%s", got)
	}
	log.Reset()
	old, err := Open(t.Context(), Memory, Options{SkipMigrate: true, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	all := old.steps
	old.steps = all[:steps-2]
	if err := old.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	log.Reset()
	old.steps = all
	if err := old.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := log.String(); strings.Count(got, "schema migrated") != 2 || strings.Contains(got, "schema created") {
		t.Errorf("an upgrade: got\n%s", got)
	}
}

// A replica of this version keeps running, and restarts, after a newer one has added optional
// schema.
func TestANewerSchemaThatOnlyAddsIsServed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	s := open(t, path)
	next := migration.Step{Version: len(s.steps) + 1, Needs: len(s.steps)}
	err := s.write(context.Background(), "test", func(c *conn) error {
		return all(
			run(c, "INSERT INTO schema_version (version, name, applied_at) VALUES (?, 'next', 0)", next.Version),
			run(c, "UPDATE settings SET value = ? WHERE name = 'schema_needs'", (migration.Applied{}).Note(next)),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(context.Background()); err != nil {
		t.Errorf("Ready: %v", err)
	}
	s.Close()
	again, err := Open(context.Background(), path, Options{})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	again.Close()
}

func TestANewerSchemaIsRefusedWithAdvice(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "db")
	s := open(t, path)
	err := s.write(ctx, "test", func(c *conn) error {
		return run(c, "INSERT INTO schema_version (version, name, applied_at) VALUES (999, 'future', 0)")()
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(ctx); !errors.Is(err, storage.ErrSchema) {
		t.Errorf("Ready: got %v, want ErrSchema", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = Open(ctx, path, Options{})
	if !errors.Is(err, storage.ErrSchema) || !strings.Contains(err.Error(), "install that version") {
		t.Errorf("Open: got %v, want ErrSchema with advice", err)
	}
}

func TestWithoutMigrationsItIsNotReady(t *testing.T) {
	ctx := context.Background()
	s, err := Open(ctx, filepath.Join(t.TempDir(), "db"), Options{SkipMigrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Ready(ctx); !errors.Is(err, storage.ErrSchema) || !strings.Contains(err.Error(), "migrate up") {
		t.Errorf("got %v, want ErrSchema with advice", err)
	}
	if st, err := s.MigrationStatus(ctx); err != nil || len(st) == 0 || !st[0].AppliedAt.IsZero() {
		t.Errorf("before: got %v, %v; want pending steps", st, err)
	}
	if err := s.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(ctx); err != nil {
		t.Error(err)
	}
	if st, err := s.MigrationStatus(ctx); err != nil || st[0].AppliedAt.IsZero() {
		t.Errorf("after: got %v, %v; want applied steps", st, err)
	}
}

func TestUpgradeFromEarlierSchemas(t *testing.T) {
	for _, from := range []int{1, 4} {
		t.Run(strconv.Itoa(from), func(t *testing.T) { upgradeFrom(t, from) })
	}
}

func upgradeFrom(t *testing.T, from int) {
	path := filepath.Join(t.TempDir(), "db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	exec := func(query string, args ...any) {
		t.Helper()
		if _, err := db.Exec(query, args...); err != nil {
			t.Fatalf("%v: %s", err, query)
		}
	}
	steps, err := migration.Steps(migration.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	exec(versionTable)
	for _, s := range steps[:from] {
		exec(s.SQL)
		exec("INSERT INTO schema_version (version, name, applied_at) VALUES (?, ?, 0)", s.Version, s.Name)
	}
	storagetest.Upgrade(t, exec, func() storage.Store { return open(t, path) })
}
