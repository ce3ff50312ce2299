package api_test

import (
	"database/sql"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
)

// TestBusyDatabase checks that a change is refused with 503 and not made while another process
// locks the database (OB-10). This holds with and without an object in the path, and with and
// without a key.
func TestBusyDatabase(t *testing.T) {
	path := installation.Database(t)
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	r := newRigOn(t, store)
	r.person("root", admin.Administrator, "admin:write", time.Minute)
	other, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	other.SetMaxOpenConns(1)
	if _, err := other.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	const bob = `{"name":"bob","password":"correct horse battery"}`
	r.is(r.do("root", "POST", "/users", bob), 503, "unavailable")
	r.is(r.do("root", "POST", "/users", bob, "Idempotency-Key", "one"), 503, "unavailable")
	r.is(r.do("root", "POST", "/users/root/enable", ""), 503, "unavailable")
	if _, err := other.Exec("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	r.is(r.do("root", "POST", "/users", bob, "Idempotency-Key", "one"), 200, "")
}
