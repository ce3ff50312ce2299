// Package pagetest compares generated pages of the manual (docs/reference) with the code.
package pagetest

import (
	"os"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/module"
)

// Is fails the test if the file docs/name does not equal want. With update, the test's flag
// -update, it writes the file instead. command tells how to run the update.
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

// difference returns the first line that differs between two texts.
func difference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return "\n- " + a[i] + "\n+ " + b[i]
		}
	}
	return "\none is longer"
}

// Above returns Markdown, whose links start from docs/, for a page in a folder below docs/.
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

// Cell returns Markdown for a table cell.
func Cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

// Words wraps prose at 100 columns.
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
