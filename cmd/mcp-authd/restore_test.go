//go:build linux || darwin || freebsd

package main

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
)

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
			!strings.Contains(errs.String(), "nothing was restored: it was stopped before its end; start it again") {
			t.Errorf("%v: got %v %s", sent, err, errs.String())
		}
		if left, _ := os.ReadDir(tmp); len(left) != 0 {
			t.Errorf("%v: it left %v", sent, left)
		}
	}
}
