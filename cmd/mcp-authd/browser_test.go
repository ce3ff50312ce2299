//go:build linux

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// TestTheBrowserOutlivesLogin checks that the browser is not killed with the command, even if the
// opener becomes the browser.
func TestTheBrowserOutlivesLogin(t *testing.T) {
	dir := t.TempDir()
	started, held, goesOn := filepath.Join(dir, "started"), filepath.Join(dir, "held"), filepath.Join(dir, "goes-on")
	script := "#!/bin/sh\ntouch " + held + " " + started + "\nwhile [ -e " + held + " ]; do sleep 0.05; done\ntouch " +
		goesOn + "\n"
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	there := func(path string) func() error {
		return func() error { _, err := os.Stat(path); return err }
	}
	ctx, done := context.WithCancel(t.Context())
	killed := exec.CommandContext(ctx, "sleep", "600") // as the browser would be
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	openBrowser(ctx, "https://auth.example.com/authorize")
	wait.Success(t, "the browser has started", there(started))
	done()
	_ = killed.Wait()
	if err := os.Remove(held); err != nil {
		t.Fatal(err)
	}
	wait.Success(t, "the browser has gone on", there(goesOn))
}
