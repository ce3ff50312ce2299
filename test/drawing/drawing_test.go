package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const modulePath = "github.com/mcp-authd/mcp-authd/"

// TestDrawing: issue 13, 3.1. The drawing is generated from its text. Each of its boxes is a
// directory, and each arrow an import.
func TestDrawing(t *testing.T) {
	t.Chdir("../..")
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	d, err := parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(target); string(got) != d.svg() {
		t.Errorf("%s is not what %s makes; run: make drawing", target, source)
	}
	for _, r := range d.rooms {
		if info, err := os.Stat(r.folder); err != nil || !info.IsDir() {
			t.Errorf("the folder %s is missing", r.folder)
		}
	}
	for _, a := range d.arrows {
		if !imports(t, a.from, a.to) {
			t.Errorf("nothing in %s imports %s", a.from, a.to)
		}
	}
}

func TestDrawingCanFail(t *testing.T) {
	for _, text := range []string{"a | b\n", "row\na | b\na -> c\n", "row\nsomething\n"} {
		if _, err := parse(text); err == nil {
			t.Errorf("%q must be a drawing", text)
		}
	}
	t.Chdir("../..")
	if imports(t, "oauth", "internal/storage") {
		t.Error("the vocabulary imports no store")
	}
	if !imports(t, "internal/storage", "oauth") {
		t.Error("an import was not seen")
	}
}

// imports reports whether a non-test file of from imports to or a package below it.
func imports(t *testing.T, from, to string) (found bool) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range f.Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			name = strings.TrimPrefix(name, modulePath)
			found = found || name == to || strings.HasPrefix(name, to+"/")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
