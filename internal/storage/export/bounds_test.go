package export_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage/export"
	"github.com/mcp-authd/mcp-authd/internal/storage/postgres"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
)

// TestEnormousRow: the memory for a crafted file is bounded.
func TestEnormousRow(t *testing.T) {
	whole := exportFile(t, newSQLite(t))
	z, err := gzip.NewReader(bytes.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	header, rest, _ := strings.Cut(string(plain), "\n")
	table, _, _ := strings.Cut(rest, "\n")
	for name, lines := range map[string]string{
		"DL-02: a row of millions of values": table + "\n[" + strings.Repeat("0,", 15<<20) + "0]\n",
		"DL-02: a row without an end":        table + "\n[" + strings.Repeat("0,", 40<<20),
		"DL-02: millions of columns":         strings.Replace(table, "[", "["+strings.Repeat("{},", 10<<20), 1) + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			w, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(w, header+"\n"+lines)
			w.Close()
			r := reader(t, b.Bytes())
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err = r.NextTable()
			if err == nil {
				_, err = r.NextRow()
			}
			runtime.ReadMemStats(&after)
			if !errors.Is(err, export.ErrBroken) {
				t.Errorf("got %v", err)
			}
			if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 256 {
				t.Errorf("it took %d MiB", took)
			}
		})
	}
}

// The error for a migration that fails after all rows were written is distinct.
func TestMigrationAfterImport(t *testing.T) {
	url := pgtest.Start(t).Database(t)
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	if _, err := c.Exec(t.Context(), "CREATE TABLE certificate_files (stranger bigint)"); err != nil {
		t.Fatal(err)
	}
	err = postgres.Import(t.Context(), url, reader(t, earlier(t)), postgres.Options{})
	if !errors.Is(err, export.ErrMigration) {
		t.Errorf("DL-02: got %v, want %v", err, export.ErrMigration)
	}
	var fp []byte
	err = c.QueryRow(t.Context(), "SELECT value FROM settings WHERE name = 'fingerprint'").Scan(&fp)
	if err != nil || string(fp) != "fp" {
		t.Errorf("DL-02: the rows are not there: %q, %v", fp, err)
	}
}
