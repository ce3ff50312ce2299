// Package pagetest holds pages of the manual that are made from the code (docs/reference) to that code.
package pagetest

import (
	"os"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/module"
)

// Is fails the test when a file below docs/ is not what the code says, or writes it so. Update is the flag
// -update of the test, and command how to run it.
func Is(t *testing.T, update bool, name, want, command string) {
	t.Helper()
	file := module.Path(t, "docs/"+name)
	if update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("DL-05: docs/%s is not that of the code: %s -update (or make reference)%s", name, command,
			difference(string(got), want))
	}
}

// difference is the first line in which two texts differ.
func difference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return "\n- " + a[i] + "\n+ " + b[i]
		}
	}
	return "\none is longer"
}

// Above is Markdown that is written as from docs/, for a page in a folder of it.
func Above(text string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "](")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString("](")
		if !strings.HasPrefix(rest, "#") && !strings.HasPrefix(rest, "http") && !strings.HasPrefix(rest, "mailto:") {
			b.WriteString("../")
		}
		text = rest
	}
}

// Cell is Markdown for the cell of a table.
func Cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

// Words breaks prose into lines of at most 100 columns.
func Words(text string) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		if column > 0 && column+1+len(word) > 100 {
			b.WriteByte('\n')
			column = 0
		}
		if column > 0 {
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	b.WriteByte('\n')
	return b.String()
}
