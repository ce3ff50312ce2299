package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

const guarded = `package p

import "errors"

var errNegative = errors.New("negative")

const query = "SELECT 1 FROM t WHERE id = ?1 AND deleted_at IS NULL"

func Root(n int, strict bool) (int, error) {
	if n < 0 && strict {
		return 0, errNegative
	}
	return n, nil
}
`

func TestChanges(t *testing.T) {
	name := filepath.Join(t.TempDir(), "p.go")
	if err := os.WriteFile(name, []byte(guarded), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := changesOf(name)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range found {
		got = append(got, c.text())
	}
	for _, want := range []string{
		"SQL condition dropped: \"SELECT 1 FROM t WHERE id = ?1 AND deleted_at IS NULL\" -> \"SELECT 1 FROM t WHERE id = ?1\"",
		"check deleted: n < 0 && strict -> false && (n < 0 && strict)",
		"condition negated: n < 0 && strict -> !(n < 0 && strict)",
		"operand dropped: n < 0 && strict -> n < 0 && (true || strict)",
		"operator changed: n < 0 -> n <= 0",
		"error forgotten: errNegative -> nil",
		"constant changed: 0 -> 1",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no change %q in %q", want, got)
		}
	}
}

func TestTry(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.26\n",
		"p/p.go": guarded,
		"p/p_test.go": `package p

import "testing"

func TestRoot(t *testing.T) {
	if _, err := Root(-1, true); err != errNegative {
		t.Error(err)
	}
}
`,
	} {
		if err := os.MkdirAll(filepath.Join(dir, "p"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("GOFLAGS", "-mod=mod")
	all, err := changesOf("p/p.go")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]outcome{
		"check deleted: n < 0 && strict -> false && (n < 0 && strict)":  noticed,
		"operand dropped: n < 0 && strict -> n < 0 && (true || strict)": survived,
	}
	for _, c := range all {
		expected, ok := want[c.text()]
		if !ok {
			continue
		}
		got, err := try(t.Context(), target{dir: "p", tests: []string{"./p"}}, c, t.TempDir())
		if err != nil || got != expected {
			t.Errorf("%s: got %v, %v, want %v", c, got, err, expected)
		}
	}
	broken := all[0]
	broken.new = "not go"
	if got, err := try(t.Context(), target{dir: "p", tests: []string{"./p"}}, broken, t.TempDir()); err != nil ||
		got != refused {
		t.Errorf("a change that does not compile: got %v, %v", got, err)
	}
}
