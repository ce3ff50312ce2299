package auditsink

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestFullDisk checks that, on a full disk, a file contains only whole lines, and that delivery
// repeats the rest and continues once there is room (OB-06). The test runs itself again where it
// may mount a small file system.
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
	const script = `mount -t tmpfs -o size=64k none "$MCP_AUTHD_FULL_DISK" || exit 77; exec "$0" -test.run='^TestFullDisk$' -test.v`
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
	f := newFile(asJSON, Rotation{Path: filepath.Join(dir, "audit.jsonl")}, time.Now)
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 40<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	at, err := int64(0), error(nil)
	for err == nil && at < 1000 {
		if err = f.Deliver(t.Context(), entries(at, 50)); err == nil {
			at += 50
		}
	}
	if !errors.Is(err, syscall.ENOSPC) || at == 0 {
		t.Fatalf("after %d entries: got %v", at, err)
	}
	if read(t, f.Path) != string(asJSON.lines(entries(0, at))) {
		t.Error("the file has not the lines that were taken, and no others")
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := f.Deliver(t.Context(), entries(at, 50)); err != nil {
		t.Fatal(err)
	}
	if read(t, f.Path) != string(asJSON.lines(entries(0, at+50))) {
		t.Error("it does not go on where it was")
	}
}
