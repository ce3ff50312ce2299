package e2e

import (
	"errors"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
)

// A second signal ends what the first one cannot: here a configuration that is read from a pipe into which nobody
// writes.
func TestSecondSignal(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "mcp-authd.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(demotest.Binary(t), "serve", "--config", pipe)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for end := time.After(time.Minute); ; { // the first ones may come before it listens for any
		select {
		case err := <-done:
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
				t.Errorf("got %v, want an end by SIGTERM", err)
			}
			return
		case <-end:
			_ = cmd.Process.Kill()
			t.Fatal("it does not end")
		case <-time.After(200 * time.Millisecond):
			_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended just now
		}
	}
}
