//go:build linux || darwin || freebsd

package main

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
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

// TestLeftoversOfRestore checks that doctor names the copy of a killed restore, and that the next
// restore removes it and nothing else (DL-02).
func TestLeftoversOfRestore(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	_, environ := installed(t)
	copied := filepath.Join(t.TempDir(), "copy.db")
	if code, _, errs := runs(t, environ, "backup", copied); code != exitOK {
		t.Fatalf("backup: got %d %s", code, errs)
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

	d := testDoctor(t, "issuer: https://auth.example\n")
	d.leftCopies()
	if got := d.all(); strings.Count(got, "\n") != 2 ||
		!strings.Contains(got, "warning files a restore that was killed has left a copy in "+killed+"\n") {
		t.Errorf("doctor: %s", got)
	}
	code, _, errs := runs(t, environ, "restore", "--check", copied)
	if code != exitOK ||
		!strings.Contains(errs, "mcp-authd: removed "+killed+", the copy of a restore that was killed") {
		t.Errorf("got %d %s", code, errs)
	}
	if !strings.Contains(errs, kept[1]+", the copy of a restore that was killed, cannot be removed") {
		t.Errorf("got %s", errs)
	}
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), restorePrefix+"*"))
	if !slices.Equal(left, kept) {
		t.Errorf("got %v, want %v", left, kept)
	}
	if _, err := os.Stat(filepath.Join(kept[3], sqlite.RehearsalName)); err != nil {
		t.Errorf("what a link leads to: %v", err)
	}
}

// TestRestoreEndedBySignal checks that a restore ended by a signal leaves no copy (DL-02).
func TestRestoreEndedBySignal(t *testing.T) {
	_, environ := installed(t)
	large := filepath.Join(t.TempDir(), "large.db") // a sparse file, which takes a while to copy
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, 2<<30); err != nil {
		t.Fatal(err)
	}
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGHUP) // programs started under nohup ignore it
	defer signal.Stop(heard)
	for _, sent := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		tmp := t.TempDir()
		c := exec.CommandContext(t.Context(), "mcp-authd", "restore", "--check", large)
		c.Env = append(append(os.Environ(), environ...), "TMPDIR="+tmp)
		errs := &output{}
		c.Stderr = errs
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		copies := func() []string {
			found, _ := filepath.Glob(filepath.Join(tmp, "*", sqlite.RehearsalName))
			return found
		}
		inTime(t, errs, "it copies", func() bool { return len(copies()) > 0 })
		if err := c.Process.Signal(sent); err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(); err == nil || c.ProcessState.ExitCode() != exitFailure ||
			!strings.Contains(errs.String(), errRestoreStopped.Error()) {
			t.Errorf("%v: got %v %s", sent, err, errs.String())
		}
		if left, _ := os.ReadDir(tmp); len(left) != 0 {
			t.Errorf("%v: it left %v", sent, left)
		}
	}
}
