//go:build linux || darwin || freebsd

package installation

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
)

// leave creates the files of a restore that was killed more than an hour ago.
func leave(t *testing.T, name string, mode os.FileMode, files ...string) string {
	t.Helper()
	dir := filepath.Join(os.TempDir(), name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f), []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-2 * leftoverAge)
	if err := os.Chmod(dir, mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(dir, old, old); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestLeftoversOfRestore checks that LeftCopies finds the copy of a killed restore, and that the next
// restore removes it and nothing else (DL-02).
func TestLeftoversOfRestore(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	in := created(t)
	stderr := &strings.Builder{}
	in.host.Stderr = stderr
	copied := filepath.Join(t.TempDir(), "copy.db")
	if err := in.Backup(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	killed := leave(t, restorePrefix+"1", 0o700, sqlite.RehearsalName, sqlite.RehearsalName+"-wal")
	kept := []string{
		leave(t, restorePrefix+"2", 0o755, sqlite.RehearsalName),
		leave(t, restorePrefix+"3", 0o700, "of-the-user"),
		leave(t, restorePrefix+"5", 0o700, sqlite.RehearsalName),
		filepath.Join(os.TempDir(), restorePrefix+"6"),
		filepath.Join(os.TempDir(), restorePrefix+"7"),
	}
	running, err := os.Open(kept[2])
	if err != nil {
		t.Fatal(err)
	}
	defer running.Close()
	if !lockDirectory(running) {
		t.Fatal("it cannot be locked")
	}
	if err := os.Symlink(leave(t, "of-another", 0o700, sqlite.RehearsalName), kept[3]); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(kept[4], 0o700); err != nil { // a restore that has just started
		t.Fatal(err)
	}

	if got := LeftCopies(time.Now()); !slices.Equal(got, []string{killed, kept[1]}) {
		t.Errorf("found %v, want %s and %s", got, killed, kept[1])
	}
	if _, err := in.CheckBackup(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	if got := stderr.String(); !strings.Contains(got,
		"mcp-authd: removed "+killed+", the copy of a restore that was killed\n") ||
		!strings.Contains(got, kept[1]+", the copy of a restore that was killed, cannot be removed") {
		t.Errorf("got %s", got)
	}
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), restorePrefix+"*"))
	if !slices.Equal(left, kept) {
		t.Errorf("got %v, want %v", left, kept)
	}
	if _, err := os.Stat(filepath.Join(kept[3], sqlite.RehearsalName)); err != nil {
		t.Errorf("what a link leads to: %v", err)
	}
}
