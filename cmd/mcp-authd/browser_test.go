//go:build linux

package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestTheBrowserOutlivesLogin: where the opener becomes the browser, it is not killed when the command has
// what it needs.
func TestTheBrowserOutlivesLogin(t *testing.T) {
	dir := t.TempDir()
	started, goesOn := filepath.Join(dir, "started"), filepath.Join(dir, "goes-on")
	script := "#!/bin/sh\ntouch " + started + "\nsleep 0.5\ntouch " + goesOn + "\n"
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	there := func(path string) bool {
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if _, err := os.Stat(path); err == nil {
				return true
			}
		}
		return false
	}
	ctx, done := context.WithCancel(t.Context())
	openBrowser(ctx, "https://auth.example.com/authorize")
	if !there(started) {
		t.Fatal("nothing was opened")
	}
	if done(); !there(goesOn) {
		t.Error("the browser was killed")
	}
}
