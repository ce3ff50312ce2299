package sqlite

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// crashed is a database whose last row is in its log yet, as a server leaves it that was killed.
func crashed(t *testing.T, row string) (path string) {
	t.Helper()
	living := filepath.Join(t.TempDir(), "living.db")
	s, err := Open(t.Context(), living, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Remember(t.Context(), "row", []byte(row)); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "mcp-authd.db")
	for _, suffix := range []string{"", "-wal"} {
		if err := copyFile(living+suffix, path+suffix); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// row is what a database remembers.
func row(t *testing.T, path string) string {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var value string
	if err := db.QueryRow("SELECT value FROM settings WHERE name = 'fact:row'").Scan(&value); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return value
}

func TestRestoreLosesNothing(t *testing.T) {
	path, backup := crashed(t, "new"), crashed(t, "old")
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	kept, err := Restore(t.Context(), backup, path, now)
	if err != nil {
		t.Fatal(err)
	}
	if got := row(t, path); got != "old" {
		t.Errorf("DL-02 what was in the log of the backup: %q", got)
	}
	if got := row(t, kept); got != "new" {
		t.Errorf("DL-02 what was in the log of the previous database: %q", got)
	}
	if _, err := Restore(t.Context(), kept, path, now.Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if got := row(t, path); got != "new" {
		t.Errorf("DL-02 the previous database back: %q", got)
	}
	for _, suffix := range []string{"-moving", ".restoring", ".restoring-wal"} {
		if _, err := os.Stat(path + suffix); err == nil {
			t.Errorf("DL-02 it left %s", suffix)
		}
	}
	r, err := Rehearse(t.Context(), crashed(t, "rehearsed"), t.TempDir(), Options{})
	if err != nil || r.Migration == 0 {
		t.Errorf("DL-02 a rehearsal of a copy with its log: %+v, %v", r, err)
	}
}

// A server that opened a database before another was put in its place, and attends only then, is not ready.
func TestReplacedWhileOpened(t *testing.T) {
	path := crashed(t, "old")
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := Restore(t.Context(), crashed(t, "other"), path, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Attend(); err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "put in the place of this one") {
		t.Errorf("DL-02 got %v", err)
	}
}
