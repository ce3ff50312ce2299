package idptest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

var build struct {
	once sync.Once
	path string
	err  error
}

// dex returns the path of Dex, built once for the test process. Where it cannot be built
// the test is skipped; with CI=true that is a failure.
func dex(tb testing.TB) string {
	tb.Helper()
	build.once.Do(func() {
		_, file, _, _ := runtime.Caller(0)
		dir, err := os.MkdirTemp("", "mcp-authd-dex-")
		if err != nil {
			build.err = err
			return
		}
		build.path = filepath.Join(dir, "dex")
		cmd := exec.Command("go", "build", "-o", build.path, ".")
		cmd.Dir = filepath.Join(filepath.Dir(file), "..", "..", "..", "test", "dex")
		if out, err := cmd.CombinedOutput(); err != nil {
			build.err = fmt.Errorf("%w\n%s", err, out)
		}
	})
	switch {
	case build.err == nil:
	case os.Getenv("CI") == "true":
		tb.Fatalf("build Dex: %v", build.err)
	default:
		tb.Skipf("build Dex: %v", build.err)
	}
	return build.path
}

// Cleanup removes Dex; call it from TestMain after the tests.
func Cleanup() {
	if build.path != "" {
		os.RemoveAll(filepath.Dir(build.path))
	}
}
