package auditlog_test

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/auditlog"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/export"
	"github.com/mcp-authd/mcp-authd/internal/storage/postgres"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
)

// goesOn checks that new processes can append to a log, sign it and verify it.
func goesOn(t *testing.T, db storage.Store, from int64) {
	t.Helper()
	write(t, db, int(from), 5)
	sign := signer(t, db)
	c := checkpoint(t, sign)
	report, err := auditlog.Verify(t.Context(), db, keyOf(sign))
	if err != nil || c.Size != from+5 || report.Sealed != from+5 || report.Confirmed != from+5 {
		t.Errorf("got %d, %+v, %v", c.Size, report, err)
	}
}

// TestMoved: EN-09. A log continues from an older backup, and in a database of another kind.
func TestMoved(t *testing.T) {
	i := installation.New(t)
	write(t, i.Store, 0, 20)
	checkpoint(t, signer(t, i.Store))
	write(t, i.Store, 20, 5)
	backup := filepath.Join(t.TempDir(), "backup.db")
	must(t, sqlite.Backup(t.Context(), i.Path, backup))
	var file bytes.Buffer
	_, err := sqlite.Export(t.Context(), i.Path, &file, export.Header{Version: "v1", Issuer: "https://auth.example.com",
		At: time.Now()})
	must(t, err)
	goesOn(t, i.Store, 25)
	t.Run("from an older backup", func(t *testing.T) {
		s, err := sqlite.Open(t.Context(), backup, sqlite.Options{})
		must(t, err)
		defer s.Close()
		goesOn(t, s, 25)
	})
	t.Run("in PostgreSQL", func(t *testing.T) {
		url := pgtest.Start(t).Database(t)
		r, err := export.NewReader(&file)
		must(t, err)
		must(t, postgres.Import(t.Context(), url, r, postgres.Options{}))
		s, err := postgres.Open(t.Context(), url, postgres.Options{})
		must(t, err)
		defer s.Close()
		goesOn(t, s, 25)
	})
}
