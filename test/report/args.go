package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// unwatched turns off the race detector for some packages. SQLite is C translated to Go, with memory
// outside Go's heap: the detector would check each access and ignore the result, which makes tests six
// times as slow. Its driver (modernc.org/sqlite), database/sql and this module are watched. Argon2 and
// Go's parser are left out because each call uses its memory in one goroutine.
var unwatched = []string{
	"-gcflags=modernc.org/sqlite/lib=-race=false",
	"-gcflags=modernc.org/libc/...=-race=false",
	"-gcflags=modernc.org/memory=-race=false",
	"-gcflags=golang.org/x/crypto/argon2=-race=false",
	"-gcflags=go/...=-race=false",
}

// longest lists the packages with the longest tests, longest first. They start first: a long package that
// starts last would run alone and leave the other cores idle.
var longest = []string{
	"test/e2e", "internal/storage/postgres", "cmd/mcp-authd", "test/clients", "test/conformance", "test/examples",
	"authserver", "test/faults", "test/browser", "internal/gateway/stdio", "internal/attempt", "test/upstream",
	"internal/acme", "internal/sandbox", "internal/keys", "thirdparty", "internal/storage/sqlite", "internal/pages",
	"internal/auditlog", "mcpresource/gosdk", "mcpresource",
}

// arguments returns the arguments of go test for args in a directory.
func arguments(args []string, dir string) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	// Without paths, checkouts share compiled packages. Without debug symbols, linking takes less time.
	out := []string{"test", "-json", together(), "-exec=" + self + " run", "-trimpath", "-ldflags=-w"}
	if slices.Contains(args, "-race") {
		out = append(out, unwatched...)
	}
	if len(args) > 0 && args[0] == "-long" {
		return inLane(out, args[1:], dir)
	}
	for _, arg := range args {
		if arg != everything && arg != programs {
			out = append(out, arg)
			continue
		}
		all, err := packages(dir, arg)
		if err != nil {
			return nil, err
		}
		out = append(out, all...)
	}
	return out, nil
}

// readers lists the packages whose tests read our source in one goroutine. "make form" runs them without
// the race detector, which would make them ten times as slow and find nothing.
var readers = []string{"internal/archtest", "internal/conformance"}

// Patterns that "make test" runs one after the other. Tests below test/ start mcp-authd as a program, where the race
// detector would watch only the tests, so they run without it.
const (
	everything = "./..." // except programs and readers
	programs   = "./test/..."
)

// packages returns the packages of a pattern in the module of a directory, the longest first.
func packages(dir, pattern string) ([]string, error) {
	cmd := exec.Command("go", "list", "-f", "{{.Dir}}", pattern)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	listed, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	wanted := func(p string) bool {
		return !slices.Contains(readers, p) && strings.HasPrefix(p, "test/") == (pattern == programs)
	}
	out := slices.DeleteFunc(present(dir), func(p string) bool { return !wanted(strings.TrimPrefix(p, "./")) })
	for path := range strings.Lines(string(listed)) {
		p, err := filepath.Rel(root, strings.TrimSpace(path))
		if err != nil {
			return nil, err
		}
		p = filepath.ToSlash(p)
		if wanted(p) && !slices.Contains(longest, p) {
			out = append(out, "./"+p)
		}
	}
	return out, nil
}

// together returns the flag for how many packages are tested at a time: more than there are processors,
// because most tests also wait for a browser, a database or another process.
func together() string { return fmt.Sprintf("-p=%d", runtime.GOMAXPROCS(0)+4) }

// present returns the packages of longest that the module in a directory has.
func present(dir string) (out []string) {
	for _, p := range longest {
		if _, err := os.Stat(filepath.Join(dir, p)); err == nil {
			out = append(out, "./"+p)
		}
	}
	return out
}
