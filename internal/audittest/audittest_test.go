package audittest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestTable: each event is in the table of docs/operating.md, and all that is in the table
// is in the code.
func TestTable(t *testing.T) {
	table := Read(t)
	f, err := parser.ParseFile(token.NewFileSet(), "../../audit/audit.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var events []string
	ast.Inspect(f, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			for _, v := range spec.Values {
				if lit, ok := v.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					event, _ := strconv.Unquote(lit.Value)
					events = append(events, event)
				}
			}
		}
		return true
	})
	slices.Sort(events)
	if got := slices.Sorted(maps.Keys(table.Events)); !slices.Equal(got, events) {
		t.Errorf("the events are not those of the table:\ncode  %v\ntable %v", events, got)
	}
	code := source(t)
	fields := slices.Clone(table.Fields)
	for _, own := range table.Events {
		fields = append(fields, own...)
	}
	for _, f := range fields {
		if !strings.Contains(code, `("`+f+`"`) {
			t.Errorf("nothing logs the field %s", f)
		}
	}
	if len(events) < 30 || len(table.Fields) < 15 {
		t.Errorf("read %d events and %d common fields", len(events), len(table.Fields))
	}
}

// source is the code that logs.
func source(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, dir := range []string{"audit", "authserver", "dcr", "thirdparty", "keys", "internal/users", "cmd/mcp-authd", "mcpresource"} {
		files, err := filepath.Glob("../../" + dir + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatal(dir, err)
		}
		for _, name := range files {
			if !strings.HasSuffix(name, "_test.go") {
				text, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				b.Write(text)
			}
		}
	}
	return b.String()
}
