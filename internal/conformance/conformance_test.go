package conformance

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table into docs/conformance.md")

const (
	root         = "../.."
	document     = root + "/docs/conformance.md"
	requirements = root + "/docs/requirements.md"
	begin        = "<!-- The table below is written by: go test ./internal/conformance -update -->"
)

// lineNumber matches a line number of code. Lines move with every change, so a table that differs
// only in line numbers is up to date.
var lineNumber = regexp.MustCompile(`(\.go):\d+`)

// TestTable fails if docs/conformance.md does not match the tree.
func TestTable(t *testing.T) {
	text := read(t, document)
	head, table, ok := strings.Cut(text, begin)
	if !ok {
		t.Fatalf("%s has no line %q", document, begin)
	}
	found, err := collect(root)
	if err != nil {
		t.Fatal(err)
	}
	want := "\n\n" + write(known(t), found, listed(text, elsewhere))
	if *update {
		if err := os.WriteFile(document, []byte(head+begin+want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if lineNumber.ReplaceAllString(want, "$1") != lineNumber.ReplaceAllString(table, "$1") {
		t.Error("docs/conformance.md is out of date; run: go test ./internal/conformance -update")
	}
}

// TestNothingIsMissing fails if a requirement has neither a test nor an explanation, or has both.
// It also fails if a mandatory requirement has nothing that decides it, and if a cited requirement
// does not exist.
func TestNothingIsMissing(t *testing.T) {
	all := known(t)
	found, err := collect(root)
	if err != nil {
		t.Fatal(err)
	}
	text := read(t, document)
	for _, p := range judge(all, found, listed(text, untested), listed(text, elsewhere)) {
		t.Error(p)
	}
}

// TestJudge tests the rules of TestNothingIsMissing.
func TestJudge(t *testing.T) {
	all := []requirement{
		{"AS-01", "MUST"}, {"AS-02", "MUST"}, {"AS-03", "MUST"}, {"AS-04", "MAY"}, {"AS-07", "MUST†"},
		{"AS-08", "MUST"}, {"AS-09", "MAY"},
	}
	place, test := map[string]bool{"x.go:4": true}, map[string]bool{"x_test.go TestX": true}
	found := map[string]*evidence{
		"AS-01": {files: place, tests: test},
		"AS-02": {files: place, tests: test},
		"AS-07": {tests: test},
		"AS-08": {tests: test},
		"AS-09": {tests: test},
		"AS-03": {files: map[string]bool{"x.go:1": true}},
		"AS-99": {files: map[string]bool{"x.go:2": true}},
	}
	text := "| requirements | why |\n|---|---|\n| AS-02, AS-04 to AS-06 | not yet |\n\n" +
		"| requirements | decided by |\n|---|---|\n| AS-04, AS-08, AS-10 | a library |\n"
	want := []string{
		"AS-02 has a test and stands among those that have none",
		"AS-03 (MUST) has no test: write one, or say in docs/conformance.md why not",
		"AS-07 (MUST†) has no mark: mark the line that decides it, or say in docs/conformance.md what does",
		"AS-04 has no test, and docs/conformance.md says what decides it",
		"AS-10 has no test, and docs/conformance.md says what decides it",
		"AS-05 stands in docs/conformance.md and is no requirement",
		"AS-06 stands in docs/conformance.md and is no requirement",
		"AS-99 is cited, by x.go:2, and is no requirement",
	}
	if got := judge(all, found, listed(text, untested), listed(text, elsewhere)); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestScan(t *testing.T) {
	found := map[string]*evidence{}
	scan(found, "a/code.go", "package a\n\n// AS-01, RS-02: so.\nfunc F() {}\n")
	scan(found, "a/code_test.go",
		"package a\n\n// TestF is for AS-01\n// and more.\nfunc TestF(t *testing.T) {\n\t// RS-03\n}\n// AS-04: TestG\nfunc TestG(t *testing.T) {}\n")
	for id, want := range map[string]string{
		"AS-01": "a/code.go:3 a/code_test.go TestF", "RS-02": "a/code.go:3 ",
		"RS-03": " a/code_test.go TestF", "AS-04": " a/code_test.go TestG",
	} {
		e := found[id]
		if e == nil {
			t.Fatalf("%s was not found", id)
		}
		if got := list(e.files) + " " + list(e.tests); got != want {
			t.Errorf("%s: got %q, want %q", id, got, want)
		}
	}
	if len(found) != 4 {
		t.Errorf("found %v", slices.Sorted(maps.Keys(found)))
	}
}

// known reads the requirements, in order.
func known(t *testing.T) (out []requirement) {
	t.Helper()
	seen := map[string]bool{}
	for line := range strings.Lines(read(t, requirements)) {
		if m := definition.FindStringSubmatch(line); m != nil {
			if seen[m[1]] {
				t.Errorf("%s is defined twice", m[1])
			}
			seen[m[1]] = true
			out = append(out, requirement{m[1], m[2]})
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s defines nothing", requirements)
	}
	return out
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// judge returns the errors in order. open holds the requirements without a test, and others those
// that are decided elsewhere.
func judge(all []requirement, found map[string]*evidence, open, others map[string]bool) (out []string) {
	defined := map[string]bool{}
	tested := func(id string) bool { return found[id] != nil && len(found[id].tests) > 0 }
	for _, r := range all {
		defined[r.id] = true
		tested := tested(r.id)
		mandatory := strings.HasPrefix(r.level, "MUST")
		switch {
		case tested && !open[r.id] && mandatory && len(found[r.id].files) == 0 && !others[r.id]:
			out = append(out, fmt.Sprintf(
				"%s (%s) has no mark: mark the line that decides it, or say in docs/conformance.md what does",
				r.id, r.level))
		case tested && open[r.id]:
			out = append(out, r.id+" has a test and stands among those that have none")
		case !tested && !open[r.id]:
			out = append(out,
				fmt.Sprintf("%s (%s) has no test: write one, or say in docs/conformance.md why not", r.id, r.level))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(others)) {
		if !tested(id) {
			out = append(out, id+" has no test, and docs/conformance.md says what decides it")
		}
	}
	for _, id := range slices.Sorted(maps.Keys(open)) {
		if !defined[id] {
			out = append(out, id+" stands in docs/conformance.md and is no requirement")
		}
	}
	for _, id := range slices.Sorted(maps.Keys(found)) {
		if !defined[id] {
			out = append(out,
				fmt.Sprintf("%s is cited, by %s, and is no requirement", id,
					list(found[id].files)+list(found[id].tests)))
		}
	}
	return out
}
