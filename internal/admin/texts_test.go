package admin_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNoFlags checks that the texts and errors of operations mention no command-line flags, because
// all front ends show them (OB-10).
func TestNoFlags(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	flag := regexp.MustCompile(`"[^"]*(^|[^-\w])--[a-z][^"]*"`)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for n, line := range strings.Split(string(text), "\n") {
			if found := flag.FindString(line); found != "" {
				t.Errorf("OB-10: %s:%d speaks of a flag: %s", file, n+1, found)
			}
		}
	}
}
