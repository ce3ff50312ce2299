// Package failure saves files that explain a failed test. They are below test/out, in one directory
// for each test. CI uploads them.
package failure

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/module"
)

// Save writes data to test/out/PACKAGE/TEST/name and logs the path. A second file of the same name
// gets a number.
func Save(tb testing.TB, name string, data []byte) {
	tb.Helper()
	path, err := write(tb.Name(), name, data)
	if err != nil {
		tb.Logf("%s is not kept: %v", name, err)
		return
	}
	tb.Logf("see %s", path)
}

func write(test, name string, data []byte) (path string, err error) {
	dir, err := directory(test)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	path = filepath.Join(dir, name)
	for n := 2; ; n++ {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err == nil {
			_, err = f.Write(data)
			return path, errors.Join(err, f.Close())
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", err
		}
		path = filepath.Join(dir, fmt.Sprintf("%d-%s", n, name))
	}
}

// shown is the number of log lines that a failed test shows. The file has the whole log.
const shown = 20

// Log saves a server's log as name if the test fails, and shows its last lines.
func Log(tb testing.TB, name string, log func() string) {
	tb.Helper()
	tb.Cleanup(func() {
		if !tb.Failed() {
			return
		}
		text := log()
		lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
		tb.Logf("the last lines of %s:\n%s", name, strings.Join(lines[max(0, len(lines)-shown):], "\n"))
		Save(tb, name, []byte(text))
	})
}

// Goroutines saves the stacks of all goroutines. They show why a test hangs.
func Goroutines(tb testing.TB) {
	tb.Helper()
	var stacks bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&stacks, 2); err != nil {
		tb.Logf("no stacks: %v", err)
		return
	}
	Save(tb, "goroutines.txt", stacks.Bytes())
}

// directory returns the directory for the files of a test. A test runs in the directory of its package.
func directory(test string) (string, error) {
	pkg, err := os.Getwd()
	if err != nil {
		return "", err
	}
	root, err := module.Root()
	if err != nil {
		return "", err
	}
	pkg, err = filepath.Rel(root, pkg)
	return filepath.Join(root, "test", "out", pkg, plain(test)), err
}

// plain returns a directory name for a test, whose name can be a sentence.
func plain(test string) string {
	const most = 100
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		case r == '/':
			return '.'
		}
		return '_'
	}, test)
	return name[:min(len(name), most)]
}
