package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
)

const (
	maxFiles   = 40 // of a package, without tests
	maxMethods = 60 // of a type
)

// manyFiles lists the packages with more files, and their bounds, which may only fall. Paths are
// without internal/. In the two stores and their suite, one file is one verb.
var manyFiles = map[string]int{
	"admin": 59, "authserver": 77, "cmd/mcp-authd": 55, "storage": 46, "storage/postgres": 62, "storage/sqlite": 66,
	"storage/storagetest": 75,
}

// manyMethods lists the types with more methods, and their bounds, which may only fall.
var manyMethods = map[string]int{
	"admin.Service": 243, "admin/console.view": 100, "assembly.Parts": 62, "authserver.Server": 82,
	"installation.Installation": 78, "storage/postgres.Store": 155, "storage/sqlite.Store": 148,
	"storage/storagetest.env": 135, "thirdparty.Delegation": 100, "pages.Pages": 67,
	"mcpresource.Guard": 44,
}

// smallPackages checks that a package is one room that a reader can know.
func smallPackages(m module) []string {
	files := map[string]int{}
	for _, f := range m.files {
		if !f.test() && !ast.IsGenerated(f.syntax) {
			files[strings.TrimPrefix(f.dir(), "internal/")]++
		}
	}
	return over(files, manyFiles, maxFiles, "files")
}

// smallTypes checks that a type is one thing. A check or a step of its own is a type of its own.
func smallTypes(m module) []string {
	methods := map[string]int{}
	for _, f := range m.files {
		if f.test() || ast.IsGenerated(f.syntax) {
			continue
		}
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
				methods[strings.TrimPrefix(f.dir(), "internal/")+"."+receiver(fn)]++
			}
		}
	}
	return over(methods, manyMethods, maxMethods, "methods")
}

// over returns a finding for each count above its bound.
func over(counts, bounds map[string]int, most int, what string) (bad []string) {
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		limit, ok := bounds[name]
		if !ok {
			limit = most
		}
		if counts[name] > limit {
			bad = append(bad, fmt.Sprintf("%s has %d %s, the limit is %d", name, counts[name], what, limit))
		}
	}
	return bad
}
