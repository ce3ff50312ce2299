package export_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage/export"
	"github.com/mcp-authd/mcp-authd/internal/storage/postgres"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
)

var from = export.Header{Version: "test", Issuer: "https://auth.example.com", At: time.Unix(1_800_000_000, 0).UTC()}

// newSQLite creates a database with rows in every exported table.
func newSQLite(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "authd.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db := openFile(t, path)
	for _, name := range export.Tables() {
		fillWithAnything(t, db, name)
	}
	return path
}

// references returns the columns of other tables that the columns of a table refer to.
func references(t *testing.T, db *sql.DB, table string) map[string]string {
	t.Helper()
	rows, err := db.Query(`SELECT "from", "to" FROM pragma_foreign_key_list(?)`, table)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for rows.Next() {
		var from, to string
		if err := rows.Scan(&from, &to); err != nil {
			t.Fatal(err)
		}
		out[from] = to
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		t.Fatal(err)
	}
	return out
}

func openFile(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=synchronous(0)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// fillWithAnything writes three rows. The last has null in every column that allows it.
func fillWithAnything(t *testing.T, db *sql.DB, table string) {
	t.Helper()
	if table == "grant_walks" { // has one row
		if _, err := db.Exec("UPDATE grant_walks SET codes = 1003, newer = 1001"); err != nil {
			t.Fatal(err)
		}
		return
	}
	boolean := map[string]bool{
		"early": true, "for_program": true, "began": true, "admin": true, "linked": true, "disabled": true,
	}
	short := map[string]bool{"phase": true, "count": true, "generation": true}
	column := references(t, db, table)
	rows, err := db.Query("SELECT name, type, \"notnull\" OR pk > 0 FROM pragma_table_info(?)", table)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	values := make([][]any, 3)
	for rows.Next() {
		var name, kind string
		var must bool
		if err := rows.Scan(&name, &kind, &must); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
		for i := range values {
			var v any
			switch {
			case i == 2 && !must && name != "status_index", name == "alias_of" && i == 0:
			case name == "alias_of":
				v = "\u202e & < > '\" ü\n\t0 uri"
			case kind == "TEXT":
				v = fmt.Sprintf("\u202e & < > '\" ü\n\t%d %s", i, cmp.Or(column[name], name))
				if name == "state" {
					v = fmt.Sprint("state", i)
				}
			case kind == "BLOB":
				v = []byte{0, 0xff, byte(i), byte(len(names))}
				unique := []string{"credential_id", "id", "binding"}
				if i == 1 && !strings.HasSuffix(name, "hash") && !slices.Contains(unique, name) {
					v = []byte{}
				}
			case table == "attempt_keys" || name == "seq":
				v = int64(i + 1)
			case boolean[name]:
				v = int64(i % 2)
			case short[name]:
				v = int64(1<<31 - 1 - i)
			case name == "status_index", name == "upto":
				v = int64(1000 + i)
			default:
				v = int64(1<<63 - 1 - i)
			}
			values[i] = append(values[i], v)
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		t.Fatal(err)
	}
	q := "INSERT INTO " + table + " (" + strings.Join(names, ", ") + ") VALUES (?" +
		strings.Repeat(", ?", len(names)-1) + ")"
	for i, row := range values {
		if _, err := db.Exec(q, row...); err != nil {
			t.Fatalf("%s, row %d: %v", table, i, err)
		}
	}
}

func exportFile(t *testing.T, path string) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := sqlite.Export(t.Context(), path, &b, from); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func reader(t *testing.T, b []byte) *export.Reader {
	t.Helper()
	r, err := export.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// lines returns the lines of an export, in an order that does not depend on the database.
func lines(t *testing.T, b []byte) []string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	table := ""
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, `{"table"`):
			table, _, _ = strings.Cut(line, `,"columns"`)
			out = append(out, line)
		case strings.HasPrefix(line, `{"end"`):
			_, rows, _ := strings.Cut(line, `"rows":`)
			rows, _, _ = strings.Cut(rows, ",")
			out = append(out, rows)
		default:
			out = append(out, table+line)
		}
	}
	slices.Sort(out)
	return out
}

func TestThereAndBack(t *testing.T) {
	there := exportFile(t, newSQLite(t))
	url := pgtest.Start(t).Database(t)
	if err := postgres.Import(t.Context(), url, reader(t, there), postgres.Options{}); err != nil {
		t.Fatal(err)
	}
	p, err := postgres.Open(t.Context(), url, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var b bytes.Buffer
	if _, err := p.Export(t.Context(), &b, from); err != nil {
		t.Fatal(err)
	}
	compare(t, "DL-02 in PostgreSQL", lines(t, there), lines(t, b.Bytes()))

	path := filepath.Join(t.TempDir(), "back.db")
	if err := sqlite.Import(t.Context(), path, reader(t, b.Bytes()), sqlite.Options{}); err != nil {
		t.Fatal(err)
	}
	compare(t, "DL-02 back in SQLite", lines(t, there), lines(t, exportFile(t, path)))

	err = postgres.Import(t.Context(), url, reader(t, there), postgres.Options{})
	if !errors.Is(err, export.ErrNotEmpty) {
		t.Errorf("DL-02 into a database with an installation: %v", err)
	}
	err = sqlite.Import(t.Context(), path, reader(t, there), sqlite.Options{})
	if !errors.Is(err, export.ErrNotEmpty) {
		t.Errorf("DL-02 into a file with an installation: %v", err)
	}
}

func compare(t *testing.T, what string, want, got []string) {
	t.Helper()
	if slices.Equal(want, got) {
		return
	}
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			t.Fatalf("%s: line %d: got %s want %s", what, i, got[i], want[i])
		}
	}
	t.Fatalf("%s: %d lines, want %d", what, len(got), len(want))
}

// The database's numbers continue after those already used, even if their rows are gone.
func TestNumbersGoOn(t *testing.T) {
	path := newSQLite(t)
	db := openFile(t, path)
	if _, err := db.Exec("DELETE FROM outbox WHERE seq = 3; DELETE FROM event_receivers"); err != nil {
		t.Fatal(err)
	}
	whole := exportFile(t, path)
	url := pgtest.Start(t).Database(t)
	if err := postgres.Import(t.Context(), url, reader(t, whole), postgres.Options{}); err != nil {
		t.Fatal(err)
	}
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	var seq int64
	err = c.QueryRow(t.Context(), `INSERT INTO outbox (id, receiver, kind, subject, detail, at, due_at, tries, failed)
		VALUES ('new', '', '', '', '', 0, 0, 0, '') RETURNING seq`).Scan(&seq)
	if err != nil || seq != 4 {
		t.Errorf("DL-02 in PostgreSQL: %d, %v", seq, err)
	}
	back := filepath.Join(t.TempDir(), "back.db")
	if err := sqlite.Import(t.Context(), back, reader(t, whole), sqlite.Options{}); err != nil {
		t.Fatal(err)
	}
	err = openFile(t, back).QueryRow(`INSERT INTO outbox (id, receiver, kind, subject, detail, at, due_at, tries, failed)
		VALUES ('new', '', '', '', '', 0, 0, 0, '') RETURNING seq`).Scan(&seq)
	if err != nil || seq != 4 {
		t.Errorf("DL-02 in SQLite: %d, %v", seq, err)
	}
}

func TestEveryTableMovesOrStays(t *testing.T) {
	path := newSQLite(t)
	rows, err := openFile(t, path).Query("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		got = append(got, name)
	}
	want := slices.Concat(export.Tables(), export.Staying())
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("DL-02 tables of the database:\n%v\nand of exports:\n%v", got, want)
	}
}

func TestBrokenExports(t *testing.T) {
	whole := exportFile(t, newSQLite(t))
	z, err := gzip.NewReader(bytes.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	zip := func(text string) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		io.WriteString(w, text)
		w.Close()
		return b.Bytes()
	}
	text := string(plain)
	last := strings.LastIndex(strings.TrimSuffix(text, "\n"), "\n") + 1
	swap := func(old, new string) []byte { return zip(strings.Replace(text, old, new, 1)) }
	const largest = "9223372036854775807"
	for name, c := range map[string]struct {
		file []byte
		want error
	}{
		"no export":                       {[]byte("SQLite format 3\x00"), export.ErrForm},
		"something else, compressed":      {zip("{}\n"), export.ErrForm},
		"a later form":                    {swap(`export":1`, `export":2`), export.ErrForm},
		"a later migration":               {swap(`"migration":`, `"migration":1`), export.ErrNewer},
		"cut off":                         {whole[:len(whole)/2], export.ErrBroken},
		"without its end":                 {zip(text[:last]), export.ErrBroken},
		"with a row less":                 {zip(cutLine(text, "[\"\u202e")), export.ErrBroken},
		"with a changed value":            {swap("ü", "u"), export.ErrBroken},
		"with something behind its end":   {zip(text + "[]\n"), export.ErrBroken},
		"with a row of too few values":    {swap("\n[", "\n[1],\n["), export.ErrBroken},
		"with a table that is not ours":   {swap(`"table":"grants"`, `"table":"pg_authid"`), export.ErrForm},
		"with a column that is no name":   {swap(`"name":"user_id"`, `"name":"a) SELECT"`), export.ErrForm},
		"with a row of too many values":   {swap("\n[", "\n[1,1,1,1,1,1,1,1,1,1,1,1],\n["), export.ErrBroken},
		"with a header that is too long":  {zip(strings.Repeat(" ", 65<<10) + text), export.ErrBroken},
		"with a number that is a text":    {swap(largest, `"1"`), export.ErrBroken},
		"with a number that is too large": {swap(largest, "9223372036854775808"), export.ErrBroken},
	} {
		t.Run("DL-02 "+name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "new.db")
			r, err := export.NewReader(bytes.NewReader(c.file))
			if err == nil {
				err = sqlite.Import(t.Context(), path, r, sqlite.Options{})
			}
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func cutLine(text, prefix string) string {
	at := strings.Index(text, "\n"+prefix) + 1
	return text[:at] + text[at+strings.Index(text[at:], "\n")+1:]
}

func TestTextsThatCannotMove(t *testing.T) {
	for name, text := range map[string]string{
		"half of a character": "'a' || CAST(x'c3' AS TEXT)", "a NUL": "'a' || char(0)",
	} {
		t.Run("DL-02 "+name, func(t *testing.T) {
			path := newSQLite(t)
			_, err := openFile(t, path).Exec("UPDATE clients SET name = " + text + " WHERE deleted_at IS NULL")
			if err != nil {
				t.Fatal(err)
			}
			_, err = sqlite.Export(t.Context(), path, io.Discard, from)
			if !errors.Is(err, export.ErrText) || !strings.Contains(err.Error(), "clients.name") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// earlier returns an export of one row by a version without the last two migrations, which created
// the tables of tasks and certificates.
func earlier(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	h := from
	h.Migration = 51
	w, err := export.NewWriter(&b, h)
	if err != nil {
		t.Fatal(err)
	}
	table := export.Table{Name: "settings", Columns: []export.Column{
		{Name: "name", Kind: export.Text},
		{Name: "value", Kind: export.Bytes},
		{Name: "expires_at", Kind: export.Integer},
	}}
	if err := errors.Join(w.Table(table), w.Row([]any{"fingerprint", []byte("fp"), nil})); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// An export of an earlier version is migrated to this version.
func TestExportsOfEarlierVersions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new.db")
	if err := sqlite.Import(t.Context(), path, reader(t, earlier(t)), sqlite.Options{}); err != nil {
		t.Fatal(err)
	}
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{SkipMigrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Ready(t.Context()); err != nil {
		t.Errorf("DL-02 in SQLite: %v", err)
	}
	if fp, err := s.Fingerprint(t.Context(), nil); string(fp) != "fp" || err != nil {
		t.Errorf("DL-02 in SQLite: %s, %v", fp, err)
	}
	url := pgtest.Start(t).Database(t)
	if err := postgres.Import(t.Context(), url, reader(t, earlier(t)), postgres.Options{}); err != nil {
		t.Fatal(err)
	}
	p, err := postgres.Open(t.Context(), url, postgres.Options{SkipMigrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Ready(t.Context()); err != nil {
		t.Errorf("DL-02 in PostgreSQL: %v", err)
	}
}
