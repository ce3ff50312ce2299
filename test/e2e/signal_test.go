package e2e

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/logtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// TestSecondSignal checks that a second signal ends a server that does not react to the first one.
// Here it reads its configuration from a pipe without a writer.
func TestSecondSignal(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "mcp-authd.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program.Authd(t), "serve", "--config", pipe)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }() // still running only if the test has failed
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	var pen *os.File // stays open, so that the server waits
	wait.Success(t, "the server reads its configuration", func() (err error) {
		pen, err = os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0) // fails without a reader
		return err
	})
	defer pen.Close()
	var end error
	wait.Until(t, "signals have ended the server", func() bool {
		select {
		case end = <-done:
			return true
		default:
			_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
			return false
		}
	})
	var exit *exec.ExitError
	if !errors.As(end, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("got %v, want an end by SIGTERM", end)
	}
}

// TestSecondSignalWhileItDrains: OP-07. A draining server is not ready but still answers. A second
// signal ends it immediately.
func TestSecondSignalWhileItDrains(t *testing.T) {
	address := nettest.For(t)
	cmd := exec.Command(program.Authd(t), "serve", "--data", t.TempDir())
	cmd.Env = append(os.Environ(), "MCP_AUTHD_LISTEN="+address, "MCP_AUTHD_ISSUER=http://"+address,
		"MCP_AUTHD_MANAGEMENT_LISTEN=", "MCP_AUTHD_LIMITS_DRAIN=1m")
	var log logtest.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }() // still running only if the test has failed
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	demotest.Ready(t, "http://"+address, &log)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "it is red, and answers", func() bool {
		resp, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			t.Fatalf("OP-07: %v\n%s", err, log.String())
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusServiceUnavailable && resp.Close
	})
	var end error
	wait.Until(t, "a second signal has ended the server", func() bool {
		select {
		case end = <-done:
			return true
		default:
			_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
			return false
		}
	})
	var exit *exec.ExitError
	if !errors.As(end, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("OP-07: got %v, want an end by SIGTERM\n%s", end, log.String())
	}
}
