package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/storage/export"
	"github.com/mcp-authd/mcp-authd/internal/storage/migration"
)

// kinds maps the column types of STRICT tables to kinds.
var kinds = map[string]export.Kind{"TEXT": export.Text, "INTEGER": export.Integer, "BLOB": export.Bytes}

// Export writes the installation in the database at path, as of one moment. h contains the data
// that the database does not know. It returns a wrapped storage.ErrSchema if migrations are
// missing, and export.ErrText if a text cannot be exported.
func Export(ctx context.Context, path string, to io.Writer, h export.Header) (sum export.Summary, err error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return sum, err
	}
	db, err := sql.Open("sqlite", fileURI(abs)+"?_pragma=busy_timeout(5000)&_pragma=query_only(1)")
	if err != nil {
		return sum, wrap("export", err)
	}
	defer db.Close()
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return sum, wrap("export", err)
	}
	defer tx.Rollback()
	if err := exportable(ctx, tx, &h); err != nil {
		return sum, wrap("export", err)
	}
	w, err := export.NewWriter(to, h)
	if err != nil {
		return sum, err
	}
	for _, name := range export.Tables() {
		if err := exportTable(ctx, tx, w, name); err != nil {
			return sum, wrap("export", err)
		}
	}
	return w.Close()
}

// exportable fills in the header from the database, and returns an error if a migration is missing.
func exportable(ctx context.Context, tx *sql.Tx, h *export.Header) error {
	steps, err := migration.Steps(migration.SQLite)
	if err != nil {
		return err
	}
	err = tx.QueryRowContext(ctx, "SELECT coalesce(max(version), 0) FROM schema_version").Scan(&h.Migration)
	switch {
	case err != nil:
		return err
	case h.Migration < len(steps):
		return schema(migration.ErrPending)
	case h.Migration > len(steps):
		return schema(migration.ErrNewer)
	}
	err = tx.QueryRowContext(ctx, "SELECT value FROM settings WHERE name = 'fingerprint'").Scan(&h.Fingerprint)
	return ignore(err, sql.ErrNoRows)
}

func exportTable(ctx context.Context, tx *sql.Tx, w *export.Writer, name string) (err error) {
	t, err := columnsOf(ctx, tx, name)
	if err != nil {
		return err
	}
	if column := export.Numbered(name); column != "" {
		last := "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = '" + name + "'"
		if name == "grants" {
			last = "SELECT " + nextIndex + " - 1"
		}
		if err := tx.QueryRowContext(ctx, last).Scan(&t.Last); err != nil {
			return err
		}
	}
	if err := w.Table(t); err != nil {
		return err
	}
	rows, err := tx.QueryContext(ctx, "SELECT "+t.Names()+" FROM "+name+" WHERE "+export.Moves(name))
	if err != nil {
		return err
	}
	defer func() { err = joinErr(err, rows.Close()) }()
	values, into := make([]any, len(t.Columns)), make([]any, len(t.Columns))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		if err := w.Row(values); err != nil {
			return err
		}
	}
	return rows.Err()
}

func columnsOf(ctx context.Context, tx *sql.Tx, name string) (t export.Table, err error) {
	t.Name = name
	rows, err := tx.QueryContext(ctx, "SELECT name, type FROM pragma_table_info(?)", name)
	if err != nil {
		return t, err
	}
	defer func() { err = joinErr(err, rows.Close()) }()
	for rows.Next() {
		var column, kind string
		if err := rows.Scan(&column, &kind); err != nil {
			return t, err
		}
		t.Columns = append(t.Columns, export.Column{Name: column, Kind: kinds[kind]})
	}
	return t, rows.Err()
}

// Import creates a database at path from an export, and migrates it to this program's schema.
// Either the database is complete, or it does not exist. It returns a wrapped export.ErrNotEmpty if
// path has data, and export.ErrBroken or ErrNewer if the export cannot be used. It returns
// ErrLocked while another process creates a database there.
func Import(ctx context.Context, path string, from *export.Reader, o Options) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if taken(abs) {
		return fmt.Errorf("sqlite: import: %w", export.ErrNotEmpty)
	}
	release, err := claim(abs)
	if err != nil {
		return fmt.Errorf("sqlite: import: %w", err)
	}
	defer release()
	making := abs + ".importing"
	removeDatabase(making) // of an interrupted import
	defer removeDatabase(making)
	if err := fillNew(ctx, making, from, o); err != nil {
		return err
	}
	whole, err := Open(ctx, making, Options{Now: o.Now, Logger: o.Logger})
	if err == nil {
		err = whole.Close()
	}
	if err == nil {
		err = Check(ctx, making)
	}
	if err != nil {
		return err
	}
	if taken(abs) { // by a command, since the first check
		return fmt.Errorf("sqlite: import: %w", export.ErrNotEmpty)
	}
	return put(making, abs)
}

// taken reports whether a database at path has data, including data that is only in its log.
func taken(path string) bool {
	for _, suffix := range append([]string{""}, beside...) {
		if info, err := os.Stat(path + suffix); err == nil && info.Size() > 0 {
			return true
		}
	}
	return false
}

// put moves a finished database to its place durably.
func put(made, path string) error {
	if err := os.Rename(made, path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	_ = dir.Sync() // unsupported on some systems
	return dir.Close()
}

// beside lists the suffixes of the files that SQLite keeps beside a database.
var beside = []string{"-wal", "-shm", "-journal"}

func removeDatabase(path string) {
	for _, suffix := range append([]string{""}, beside...) {
		_ = os.Remove(path + suffix)
	}
}

// fillNew creates a database with the migrations of the export, and writes its rows.
func fillNew(ctx context.Context, path string, from *export.Reader, o Options) error {
	steps, err := migration.Steps(migration.SQLite)
	if err != nil {
		return err
	}
	last := from.Header().Migration
	if last > len(steps) {
		return export.ErrNewer
	}
	o.upTo = last
	s, err := Open(ctx, path, o)
	if err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", dsn(fileURI(path), false))
	if err != nil {
		return wrap("import", err)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err == nil {
		if err = fill(ctx, tx, from); err == nil {
			err = tx.Commit()
		} else {
			err = errors.Join(err, tx.Rollback())
		}
	}
	return joinErr(err, db.Close())
}

func fill(ctx context.Context, tx *sql.Tx, from *export.Reader) error {
	if _, err := tx.ExecContext(ctx, "PRAGMA defer_foreign_keys = 1"); err != nil { // an alias and its resource
		return err
	}
	for _, name := range export.Seeded() {
		if _, err := tx.ExecContext(ctx, "DELETE FROM "+name+" WHERE "+export.Moves(name)); err != nil {
			return err
		}
	}
	for {
		t, err := from.NextTable()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = fillTable(ctx, tx, from, t)
		}
		if err != nil {
			return err
		}
	}
}

func fillTable(ctx context.Context, tx *sql.Tx, from *export.Reader, t export.Table) error {
	st, err := tx.PrepareContext(ctx, "INSERT INTO "+t.Name+" ("+t.Names()+") VALUES (?"+
		strings.Repeat(", ?", len(t.Columns)-1)+")")
	if err != nil {
		return err
	}
	defer st.Close()
	for {
		row, err := from.NextRow()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if _, err = st.ExecContext(ctx, row...); err != nil {
			return fmt.Errorf("%s: %w", t.Name, wrap("write a row", err))
		}
	}
	if export.Numbered(t.Name) != "seq" || t.Last == 0 {
		return nil
	}
	// Numbers are never reused.
	if _, err := tx.ExecContext(ctx, "DELETE FROM sqlite_sequence WHERE name = ?", t.Name); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", t.Name, t.Last)
	return err
}
