package sqlite

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage/migration"
)

var update = flag.Bool("update", false, "write migrations/schema/sqlite.sql")

// TestSchemaOfNewDatabases: a new database has exactly the schema that the steps produce one by
// one.
func TestSchemaOfNewDatabases(t *testing.T) {
	stepped := stepByStep(t)
	script := fmt.Sprintf("-- steps 1 to %d\n", len(stepped.steps)) +
		"-- Written by go test ./internal/storage/sqlite -run TestSchemaOfNewDatabases -update.\n\n" + dump(t, stepped, true)
	path := filepath.Join("..", "..", "..", "migrations", "schema", "sqlite.sql")
	if *update {
		if err := os.WriteFile(path, []byte(script), 0o644); err != nil {
			t.Fatal(err)
		}
		return // the file is part of the next build
	}
	if got, version := migration.SQLiteSchema(); got != script || version != len(stepped.steps) {
		t.Fatalf("%s is not what the steps come to (as of step %d of %d); "+
			"run go test ./internal/storage/sqlite -run TestSchemaOfNewDatabases -update", path, version, len(stepped.steps))
	}
	if got, want := dump(t, open(t, filepath.Join(t.TempDir(), "db")), false), dump(t, stepped, false); got != want {
		t.Errorf("a new database differs from a migrated one:\n%s\nwant\n%s", got, want)
	}
}

// stepByStep opens a new database and applies the steps as to an old one.
func stepByStep(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "db"), Options{SkipMigrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	all := s.steps
	for n := 1; n <= len(all); n += len(all) - 1 {
		s.steps = all[:n]
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// dump returns the statements that create a database: tables, their rows, then indexes and
// triggers. A script omits the record of applied steps; a dump omits only their times.
func dump(t *testing.T, s *Store, script bool) string {
	t.Helper()
	var tables, others, rows []string
	for _, o := range cells(t, s, "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid") {
		kind, name, statement := o[0], o[1], o[2]+";\n"
		switch {
		case kind != "table":
			others = append(others, statement)
			continue
		case script && name == "schema_version":
			continue
		case !strings.HasPrefix(name, "sqlite_"): // SQLite creates its own
			tables = append(tables, statement)
		}
		where := ""
		if script && name == "settings" {
			where = " WHERE name <> 'schema_needs'"
		}
		columns := "quote(" + strings.Join(columns(t, s, name), "), quote(") + ")"
		for _, row := range cells(t, s, "SELECT "+columns+" FROM "+name+where) {
			rows = append(rows, fmt.Sprintf("INSERT INTO %s VALUES (%s);\n", name, strings.Join(row, ", ")))
		}
	}
	slices.Sort(rows)
	return strings.Join(slices.Concat(tables, rows, others), "\n")
}

// columns returns the columns of a table, without the times of applied steps.
func columns(t *testing.T, s *Store, table string) (out []string) {
	t.Helper()
	for _, c := range cells(t, s, "SELECT name FROM pragma_table_info('"+table+"') WHERE name <> 'applied_at'") {
		out = append(out, c[0])
	}
	return out
}

func cells(t *testing.T, s *Store, q string) (out [][]string) {
	t.Helper()
	got, err := s.reads.db.QueryContext(t.Context(), q)
	if err != nil {
		t.Fatalf("%s: %v", q, err)
	}
	defer got.Close()
	names, err := got.Columns()
	for err == nil && got.Next() {
		row, into := make([]string, len(names)), make([]any, len(names))
		for i := range row {
			into[i] = &row[i]
		}
		err = got.Scan(into...)
		out = append(out, row)
	}
	if err := errors.Join(err, got.Err()); err != nil {
		t.Fatalf("%s: %v", q, err)
	}
	return out
}
