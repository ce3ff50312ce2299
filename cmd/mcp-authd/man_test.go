package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestManuals checks that each listed command has a manual page that man can show, and that pages
// are reproducible (DL-04).
func TestManuals(t *testing.T) {
	dirs := [2]string{t.TempDir(), t.TempDir()}
	for _, dir := range dirs {
		var errs bytes.Buffer
		if code := run(t.Context(), []string{"man", dir}, std{err: &errs}); code != exitOK {
			t.Fatalf("man: %s", &errs)
		}
	}
	pages, err := filepath.Glob(filepath.Join(dirs[0], "*.1"))
	if err != nil || len(pages) < 80 {
		t.Fatalf("DL-04: there are %d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		again, err := os.ReadFile(filepath.Join(dirs[1], filepath.Base(page)))
		if err != nil || !bytes.Equal(b, again) {
			t.Errorf("DL-04: %s differs from one time to the next (%v)", filepath.Base(page), err)
		}
		for line := range strings.Lines(string(b)) {
			if strings.HasPrefix(line, ".") && !strings.ContainsAny(line[1:2], "TSBRPbnf") {
				t.Errorf("DL-04: %s has no such macro: %s", filepath.Base(page), line)
			}
		}
	}
	b, err := os.ReadFile(filepath.Join(dirs[0], "mcp-authd-grant-revoke.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{".SH NAME", ".SH SYNOPSIS", ".SH OPTIONS", `\fB\-\-from\-log\fR`, ".SH EXAMPLES",
		".BR \"mcp\\-authd\\-grant\" (1)"} {
		if !bytes.Contains(b, []byte(part)) {
			t.Errorf("DL-04: the page of grant revoke has no %s:\n%s", part, b)
		}
	}
	if _, err := os.Stat(filepath.Join(dirs[0], "mcp-authd-man.1")); err == nil {
		t.Error("DL-04: a hidden command has a page")
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		return // groff checks the pages only where it is installed
	}
	out, err := exec.Command(groff, append([]string{"-man", "-ww", "-Tutf8", "-z"}, pages...)...).CombinedOutput()
	if err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("DL-04: groff says %s (%v)", out, err)
	}
}
