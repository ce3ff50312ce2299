package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const modulePath = "github.com/mcp-authd/mcp-authd"

// module is the input of the rules.
type module struct {
	gomod    string
	packages []pkg
	files    []file
}

// pkg is a package of this module, by its path inside the module. ours and foreign are the imports
// of its non-test files.
type pkg struct {
	path    string // "authserver", "internal/storage/sqlite"
	name    string
	ours    []string // "oauth"
	foreign []string // "github.com/ory/fosite"; not the standard library
	reaches []string // all linked packages, as full import paths
	cgo     bool
}

// file is a Go file of this module.
type file struct {
	path   string // "authserver/token.go"
	lines  int
	syntax *ast.File
}

func (f file) test() bool { return strings.HasSuffix(f.path, "_test.go") }
func (f file) dir() string {
	if i := strings.LastIndexByte(f.path, '/'); i >= 0 {
		return f.path[:i]
	}
	return ""
}

// load returns the module of this test. It includes packages that do not compile, because their
// imports still count.
func load(t *testing.T) module {
	t.Helper()
	m, err := readModule()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// readModule parses the files once for all tests, because there are thousands.
var readModule = sync.OnceValues(func() (m module, err error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return m, err
	}
	gomod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return m, err
	}
	m.gomod = string(gomod)
	if m.packages, err = listPackages(root); err != nil {
		return m, err
	}
	m.files, err = parseFiles(root)
	return m, err
})

func listPackages(root string) (out []pkg, err error) {
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Name,Imports,Deps,CgoFiles", "./...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1") // without it, CgoFiles is always empty
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	raw, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.String())
	}
	for d := json.NewDecoder(bytes.NewReader(raw)); ; {
		var listed struct {
			ImportPath, Name        string
			Imports, Deps, CgoFiles []string
		}
		err := d.Decode(&listed)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		p := pkg{path: inside(listed.ImportPath), name: listed.Name, reaches: listed.Deps,
			cgo: len(listed.CgoFiles) > 0}
		for _, i := range listed.Imports {
			switch {
			case within(i, modulePath):
				p.ours = append(p.ours, inside(i))
			case !standard(i):
				p.foreign = append(p.foreign, i)
			}
		}
		out = append(out, p)
	}
}

func parseFiles(root string) (out []file, err error) {
	fset := token.NewFileSet()
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := e.Name(); e.IsDir() && path != root && (name == "testdata" || name[0] == '.' || name[0] == '_') {
			return filepath.SkipDir
		}
		if e.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		syntax, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		lines := fset.File(syntax.FileStart).LineCount()
		out = append(out, file{path: filepath.ToSlash(rel), lines: lines, syntax: syntax})
		return nil
	})
	return out, err
}

// inside returns the path of one of our packages inside the module.
func inside(importPath string) string {
	return strings.TrimPrefix(strings.TrimPrefix(importPath, modulePath), "/")
}

// within reports whether path is tree or below it.
func within(path, tree string) bool {
	return path == tree || strings.HasPrefix(path, tree+"/")
}

// standard reports whether an import path belongs to the standard library: its first element
// contains no dot.
func standard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}
