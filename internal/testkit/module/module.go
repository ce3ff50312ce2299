// Package module finds files of the checkout for tests, which run in their package directories.
package module

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ours is the start of the checkout's go.mod. Some examples and tools in it are separate modules.
const ours = "module github.com/mcp-authd/mcp-authd\n"

// Root returns the root of the checkout: the directory of this module at or above the working directory.
// In another module, as tests of tests make one, it returns the outermost directory that has a go.mod.
func Root() (root string, err error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil {
			continue
		}
		if root = dir; strings.HasPrefix(string(text), ours) {
			break
		}
	}
	if root == "" {
		return "", errors.New("the working directory is in no module")
	}
	return root, nil
}

// Path returns the path of a file, given its slash-separated path in the checkout.
func Path(tb testing.TB, file string) string {
	tb.Helper()
	root, err := Root()
	if err != nil {
		tb.Fatal(err)
	}
	return filepath.Join(root, filepath.FromSlash(file))
}
