package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/attempt"
)

// TestBundleWritesOverNothing checks that a bundle overwrites no file and follows no link (security
// review A-L3).
func TestBundleWritesOverNothing(t *testing.T) {
	dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "kept")
	if err := os.WriteFile(elsewhere, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := attempt.Bundle{Attempt: attempt.Attempt{Reference: "K7PX2M4Q"}}
	s := std{out: new(bytes.Buffer)}
	if err := os.Symlink(elsewhere, filepath.Join(dir, "attempt-K7PX2M4Q.html")); err != nil {
		t.Fatal(err)
	}
	if err := writeBundle(s, dir, b); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("a link: got %v", err)
	}
	if got, _ := os.ReadFile(elsewhere); string(got) != "kept" {
		t.Errorf("the file behind a link is %q", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "attempt-K7PX2M4Q.json")); err == nil {
		t.Error("one of two files was written")
	}
	if dir = t.TempDir(); writeBundle(s, dir, b) != nil {
		t.Error("an empty directory: not written")
	}
	if err := writeBundle(s, dir, b); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("a second time: got %v", err)
	}
}
