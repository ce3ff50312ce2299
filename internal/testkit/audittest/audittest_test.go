package audittest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestTable checks that events.yaml has exactly the events and fields of the code, each with a
// description.
func TestTable(t *testing.T) {
	table := Read(t)
	for _, field := range read(t).Fields {
		if field.Is == "" {
			t.Errorf("events.yaml does not say what %v means", field.Names)
		}
	}
	for _, area := range read(t).Areas {
		for _, e := range area.Events {
			if e.When == "" {
				t.Errorf("events.yaml does not say when %s happens", e.Event)
			}
		}
	}
	ofStore := constants(t, "../../../internal/storage/events.go", nil)
	events := slices.Sorted(maps.Values(constants(t, "../../../internal/audit/audit.go", ofStore)))
	if got := slices.Sorted(maps.Keys(table.Events)); !slices.Equal(got, events) {
		t.Errorf("the events are not those of the table:\ncode  %v\ntable %v", events, got)
	}
	code := source(t)
	fields := slices.Clone(table.Fields)
	for _, own := range table.Events {
		fields = append(fields, own...)
	}
	for _, f := range fields {
		// an attribute, or a field of an event that a store records
		if !strings.Contains(code, `("`+f+`"`) && !strings.Contains(code, `"`+f+`":`) {
			t.Errorf("nothing logs the field %s", f)
		}
	}
	if len(events) < 30 || len(table.Fields) < 15 {
		t.Errorf("read %d events and %d common fields", len(events), len(table.Fields))
	}
}

// constants returns the string constants of a file. others holds constants of other packages that
// it may use.
func constants(t *testing.T, name string, others map[string]string) map[string]string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			for i, v := range spec.Values {
				switch v := v.(type) {
				case *ast.BasicLit:
					if v.Kind == token.STRING {
						out[spec.Names[i].Name], _ = strconv.Unquote(v.Value)
					}
				case *ast.SelectorExpr:
					out[spec.Names[i].Name] = others[v.Sel.Name]
				}
			}
		}
		return true
	})
	return out
}

// source returns the code that logs events.
func source(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, dir := range []string{
		"internal/audit", "authserver", "dcr", "thirdparty", "internal/keys", "internal/users", "internal/ways",
		"internal/notice", "cmd/mcp-authd", "mcpresource", "internal/secevent", "internal/admin", "internal/assembly",
		"internal/auditlog", "internal/transmit", "internal/storage/internal/column",
	} {
		err := filepath.WalkDir("../../../"+dir, func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			text, err := os.ReadFile(name)
			b.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(dir, err)
		}
	}
	return b.String()
}
