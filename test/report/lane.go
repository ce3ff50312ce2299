package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// inLane appends arguments that run only the tests of the second lane below dir.
func inLane(out, args []string, dir string) ([]string, error) {
	packages, tests, err := long(dir)
	if err != nil {
		return nil, err
	}
	if len(tests) == 0 {
		return nil, errors.New("no test calls lane.Long")
	}
	out = append(out, "-run=^("+strings.Join(tests, "|")+")$")
	slices.SortStableFunc(packages, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
	return append(append(out, args...), packages...), nil
}

// place is where a package stands among the longest, which start first.
func place(path string) int {
	if i := slices.Index(longest, strings.TrimPrefix(path, "./")); i >= 0 {
		return i
	}
	return len(longest)
}

// ignored matches directories without packages of this module.
var ignored = regexp.MustCompile(`(^|/)(testdata|node_modules|\..+)$`)

// long returns the packages below dir with tests that call lane.Long, and the names of these tests.
func long(dir string) (packages, tests []string, err error) {
	names, folders := map[string]bool{}, map[string]bool{}
	err = filepath.WalkDir(filepath.Join(dir, "."), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && ignored.MatchString(filepath.ToSlash(path)):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		tests, err := longTests(file)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for _, name := range tests {
			rel, err := filepath.Rel(dir, filepath.Dir(path))
			if err != nil {
				return err
			}
			names[name], folders["./"+filepath.ToSlash(rel)] = true, true
		}
		return nil
	})
	return slices.Sorted(maps.Keys(folders)), slices.Sorted(maps.Keys(names)), err
}

// longTests returns the tests of a file that call lane.Long. A helper must not call it: its tests would
// be in no lane.
func longTests(file *ast.File) (names []string, err error) {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || !callsLong(f) {
			continue
		}
		if f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") {
			return nil, fmt.Errorf("%s calls lane.Long but must be a test", f.Name.Name)
		}
		names = append(names, f.Name.Name)
	}
	return names, nil
}

func callsLong(f *ast.FuncDecl) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Long" {
			x, ok := s.X.(*ast.Ident)
			found = found || ok && x.Name == "lane"
		}
		return !found
	})
	return found
}
