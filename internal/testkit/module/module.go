// Package module finds files of the checkout for tests, which run in their package directories.
package module

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Root returns the root of the checkout: the outermost directory at or above the working directory
// that has a go.mod.
func Root() (root string, err error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			root = dir
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
