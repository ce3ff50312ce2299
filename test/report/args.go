package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// SQLite is C translated to Go, and its memory is no memory of Go: the race detector asks about
// each of its accesses, which takes six times as long as the tests themselves, and ignores the
// answer, since the address is outside of Go's heap. The driver that hands values to it and back
// (modernc.org/sqlite), database/sql and all of this module are watched as before. The blocks of
// argon2 are its own, and no other goroutine sees them before it has returned. Go's parser works
// for one goroutine, in the tests that read our own source.
var unwatched = []string{
	"-gcflags=modernc.org/sqlite/lib=-race=false",
	"-gcflags=modernc.org/libc/...=-race=false",
	"-gcflags=modernc.org/memory=-race=false",
	"-gcflags=golang.org/x/crypto/argon2=-race=false",
	"-gcflags=go/...=-race=false",
}

// longest are the packages whose tests take longest, the longest first. They start first: one that
// starts last runs alone, and the other core has nothing to do.
var longest = []string{
	"test/browser", "cmd/mcp-authd", "storage/postgres", "test/faults", "test/conformance", "authserver",
	"test/clients", "test/e2e", "storage/sqlite", "test/chaos", "thirdparty", "internal/archtest", "test/upstream",
	"internal/gateway/stdio", "web", "test/examples", "mcpresource", "test/zoo", "dcr", "internal/conformance",
}

// arguments are those of go test: what it is told, faster.
func arguments(args []string, dir string) []string {
	out := []string{"test", "-json", together()}
	if slices.Contains(args, "-race") {
		out = append(out, unwatched...)
	}
	for _, arg := range args {
		if arg == "./..." {
			out = append(out, present(dir)...)
		}
		out = append(out, arg)
	}
	return out
}

// together says how many packages are tested at a time. Most wait for a browser, a database or
// another process now and then: with as many as there are processors, these would have nothing to do.
func together() string { return fmt.Sprintf("-p=%d", runtime.GOMAXPROCS(0)+2) }

// present are the longest packages that a module in a directory has.
func present(dir string) (out []string) {
	for _, p := range longest {
		if _, err := os.Stat(filepath.Join(dir, p)); err == nil {
			out = append(out, "./"+p)
		}
	}
	return out
}
