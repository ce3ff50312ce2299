package sqlite

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// crashed returns a database whose last row is only in its log, as after a killed server.
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
		if err := copyFile(t.Context(), living+suffix, path+suffix); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// row returns the value that a database remembers.
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
		t.Errorf("DL-02 the log of the backup: %q", got)
	}
	if got := row(t, kept); got != "new" {
		t.Errorf("DL-02 the log of the previous database: %q", got)
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

// An administrator who moves a lost database away may leave its log, which SQLite would apply to
// the backup.
func TestRestoreBesideLogOfAnother(t *testing.T) {
	path, backup := crashed(t, "new"), crashed(t, "old")
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	moved := path + ".lost"
	if err := os.Rename(path, moved); err != nil {
		t.Fatal(err)
	}
	if kept, err := Restore(t.Context(), backup, path, now); err != nil || kept != "" {
		t.Fatalf("got %q, %v", kept, err)
	}
	if got := row(t, path); got != "old" {
		t.Errorf("DL-02 the log of another database in the one restored: %q", got)
	}
	if err := os.Rename(path+".before-20261124T120000.000Z-wal", moved+"-wal"); err != nil {
		t.Fatal(err)
	}
	if got := row(t, moved); got != "new" {
		t.Errorf("DL-02 the log was kept, and has: %q", got)
	}
}

// A server whose database is replaced between Open and Attend is not ready.
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

// A server whose database is deleted keeps using a file without a name. It must report this while
// the file can still be saved.
func TestDeletedUnderServer(t *testing.T) {
	path := crashed(t, "row")
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Attend(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, path+".away"); err != nil {
		t.Skipf("a file that is open cannot be moved here: %v", err)
	}
	if err := s.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "was deleted or moved") {
		t.Errorf("DL-02 moved away: got %v", err)
	}
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(t.Context()); err != nil {
		t.Errorf("DL-02 back again: got %v", err)
	}
}

// usedPath turns the test binary into another process that uses a database, as usedAs says, until
// it is killed.
const usedPath, usedAs = "MCP_AUTHD_SQLITE_USED", "MCP_AUTHD_SQLITE_USED_AS"

func occupy(path, as string) {
	var err error
	if as == "server" {
		var s *Store
		if s, err = Open(context.Background(), path, Options{}); err == nil {
			_, err = s.Attend()
		}
	} else {
		_, err = claim(path)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("ready")
	select {}
}

func TestReplacedByOneAlone(t *testing.T) {
	for _, as := range []string{"server", "restore"} {
		t.Run("DL-02 beside a "+as, func(t *testing.T) {
			path, backup := crashed(t, "old"), crashed(t, "other")
			other := exec.Command(os.Args[0])
			other.Env = append(os.Environ(), usedPath+"="+path, usedAs+"="+as)
			other.Stderr = os.Stderr
			out, err := other.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := other.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { other.Process.Kill() })
			if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
				t.Fatalf("%q, %v", line, err)
			}
			if _, err := Restore(t.Context(), backup, path, time.Now()); !errors.Is(err, ErrLocked) {
				t.Errorf("restore: %v", err)
			}
			if as == "restore" {
				if s, err := Open(t.Context(), path, Options{}); !errors.Is(err, ErrLocked) {
					t.Errorf("opened: %v, %v", s, err)
				}
			}
			if err := other.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			other.Wait() // it was killed
			if _, err := Restore(t.Context(), backup, path, time.Now()); err != nil || row(t, path) != "other" {
				t.Errorf("restore after its end: %v", err)
			}
		})
	}
}

// ending is a context that ends after a number of calls to Err.
type ending struct {
	context.Context
	left int
}

func (e *ending) Err() error {
	if e.left--; e.left < 0 {
		return context.Canceled
	}
	return nil
}

// An interrupted copy is removed.
func TestCopyIsStopped(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
	if err := os.WriteFile(from, make([]byte, 3*copyBuffer), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := copyFile(&ending{t.Context(), 2}, from, to); !errors.Is(err, context.Canceled) {
		t.Errorf("DL-02 got %v, want %v", err, context.Canceled)
	}
	if _, err := os.Stat(to); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("DL-02 it left a part: %v", err)
	}
	if err := copyFile(&ending{t.Context(), 5}, from, to); err != nil {
		t.Errorf("DL-02 got %v", err)
	}
}
