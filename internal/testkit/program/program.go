// Package program builds the Go programs that tests start: mcp-authd itself, examples, and programs of
// other modules such as Dex. Test processes share the programs, which are in .cache/programs of the
// checkout. A program is linked again only if its source has changed.
package program

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/module"
)

// Sum is the name of an environment variable. test/report sets it to the checksum of mcp-authd. Go
// caches a test result by the variables and files that the test reads, so a test that starts
// mcp-authd reads Sum.
const Sum = "TEST_PROGRAM_SUM"

var (
	mu    sync.Mutex
	built = map[string]func() (string, error){}
)

// Authd returns the path of mcp-authd.
func Authd(tb testing.TB) string {
	tb.Helper()
	_ = os.Getenv(Sum)
	return Build(tb, ".", "./cmd/mcp-authd")
}

// Build builds the main package pkg and returns the path of the program. Dir is the slash-separated path
// of its module in the checkout. Build fails the test if the program does not build.
func Build(tb testing.TB, dir, pkg string) string {
	tb.Helper()
	path, err := once(dir, pkg)
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// BuildOrSkip is Build for a program whose modules may not be downloadable. If the program does not
// build, BuildOrSkip skips the test, or fails it with CI=true.
func BuildOrSkip(tb testing.TB, dir, pkg string) string {
	tb.Helper()
	path, err := once(dir, pkg)
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		tb.Fatal(err)
	default:
		tb.Skip(err)
	}
	return path
}

func once(dir, pkg string) (string, error) {
	key := dir + " " + pkg
	mu.Lock()
	build := built[key]
	if build == nil {
		build = sync.OnceValues(func() (string, error) { return Make(dir, pkg) })
		built[key] = build
	}
	mu.Unlock()
	return build()
}

// Make is Build for callers without a test. It uses the flags of a release, so that both share compiled
// packages.
func Make(dir, pkg string) (path string, err error) {
	root, err := module.Root()
	if err != nil {
		return "", err
	}
	programs := filepath.Join(root, ".cache", "programs")
	if err := os.MkdirAll(programs, 0o755); err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(dir + " " + pkg))
	path = filepath.Join(programs, fmt.Sprintf("%s-%x", filepath.Base(filepath.Join(dir, pkg)), sum[:4]))
	unlock, err := lock(path + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	// Without the state of the checkout in it, a program stays the same when a test leaves a file.
	cmd := exec.Command("go", "build", "-C", filepath.Join(root, filepath.FromSlash(dir)), "-trimpath",
		"-buildvcs=false", "-o", path, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s in %s: %w\n%s", pkg, dir, err, out)
	}
	return path, nil
}
