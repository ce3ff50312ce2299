package sqlite_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
)

// TestFullDisk: a store on a full disk can be read, and reports that it cannot be written (issue
// 11, 4.3). The test runs itself again where it may mount a small file system.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv("MCP_AUTHD_FULL_DISK"); dir != "" {
		fullDisk(t, dir)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	const script = `mount -t tmpfs -o size=1800k none "$MCP_AUTHD_FULL_DISK" || exit 77; exec "$0" -test.run='^TestFullDisk$' -test.v`
	cmd := exec.CommandContext(t.Context(), "unshare", "-rm", "sh", "-c", script, self)
	cmd.Env = append(os.Environ(), "MCP_AUTHD_FULL_DISK="+dir)
	out, err := cmd.CombinedOutput()
	switch {
	case cmd.ProcessState == nil || cmd.ProcessState.ExitCode() == 77 ||
		strings.Contains(string(out), "unshare failed"):
		t.Skipf("no small file system can be mounted here: %v %s", err, out)
	case err != nil || !strings.Contains(string(out), "--- PASS: TestFullDisk"):
		t.Errorf("%v\n%s", err, out)
	}
}

func fullDisk(t *testing.T, dir string) {
	s, err := sqlite.Open(t.Context(), filepath.Join(dir, "db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Writable(t.Context()); err != nil {
		t.Fatalf("while there is room: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ballast"), make([]byte, 2<<20), 0o600); err == nil {
		t.Fatal("the disk did not fill up")
	}
	if err := s.Spend(t.Context(), "jti", "x", time.Now()); err == nil {
		t.Log("a small write still fits") // so the larger probe fails first
	}
	if err := s.Ready(t.Context()); err != nil {
		t.Errorf("a full disk can be read: %v", err)
	}
	if err := s.Writable(t.Context()); !errors.Is(err, sqlite.ErrFull) ||
		!strings.HasPrefix(err.Error(), "sqlite: writable: the disk is full, ") { // as in the log of the server
		t.Errorf("on a full disk: got %v, want %v", err, sqlite.ErrFull)
	}
	if err := os.Remove(filepath.Join(dir, "ballast")); err != nil {
		t.Fatal(err)
	}
	if err := s.Writable(t.Context()); err != nil {
		t.Errorf("when there is room again: %v", err)
	}
	if _, err := s.Client(t.Context(), "none"); err == nil ||
		!strings.Contains(err.Error(), storage.ErrNotFound.Error()) {
		t.Errorf("got %v", err)
	}
}
