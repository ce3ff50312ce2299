package sqlite

import (
	"bytes"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestTroubleWithTheFileIsNamed: issue 11, 4.4. The error tells an administrator whether to restore
// a backup, end a process, or check the permissions.
func TestTroubleWithTheFileIsNamed(t *testing.T) {
	t.Run("no database", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "db")
		if err := os.WriteFile(path, bytes.Repeat([]byte("not a database\n"), 100), 0o600); err != nil {
			t.Fatal(err)
		}
		wantTrouble(t, path, ErrDamaged)
	})
	t.Run("locked", func(t *testing.T) {
		t.Parallel() // a start waits five seconds for another one
		path := filepath.Join(t.TempDir(), "db")
		s, err := Open(t.Context(), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		db, err := sql.Open("sqlite", fileURI(path))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		db.SetMaxOpenConns(1)
		if _, err := db.Exec("PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE"); err != nil {
			t.Fatal(err)
		}
		wantTrouble(t, path, ErrLocked)
	})
	t.Run("a directory", func(t *testing.T) {
		if err := ofFile(14 | 2<<8); !errors.Is(err, ErrReadOnly) { // SQLITE_CANTOPEN_ISDIR
			t.Errorf("got %v, want %v", err, ErrReadOnly)
		}
	})
}

func wantTrouble(t *testing.T, path string, want error) {
	t.Helper()
	s, err := Open(t.Context(), path, Options{})
	if err == nil {
		s.Close()
	}
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}
