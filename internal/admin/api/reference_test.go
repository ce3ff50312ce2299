package api_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

var update = flag.Bool("update", false, "write the table of docs/api.md")

// TestReference checks the table of operations in the docs against the code (OB-10).
func TestReference(t *testing.T) {
	const file, begin, end = "../../../docs/api.md", "<!-- operations -->\n", "<!-- /operations -->"
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(old), begin)
	_, after, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatal("docs/api.md has no place for the table")
	}
	want := before + begin + reference() + end + after
	if *update {
		err = os.WriteFile(file, []byte(want), 0o644)
	} else if want != string(old) {
		t.Error("docs/api.md is not that of the operations: go test ./internal/admin/api -update")
	}
	if err != nil {
		t.Fatal(err)
	}
}

func reference() string {
	var b strings.Builder
	b.WriteString("| operation | request | what it does | fresh |\n|---|---|---|---|\n")
	mark := func(is bool) string {
		if is {
			return "yes"
		}
		return ""
	}
	for _, v := range admin.All() {
		s := v.Spec()
		fmt.Fprintf(&b, "| `%s` | `%s %s` | %s | %s |\n", s.Name, s.Method, s.Path, s.Summary, mark(s.Fresh))
	}
	return b.String()
}
