package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReport: make test says what was skipped and why, and ends with the code of go test
// (issue 11, 5.5).
func TestReport(t *testing.T) {
	module := func(body string) string {
		t.Helper()
		dir := t.TempDir()
		for file, text := range map[string]string{
			"go.mod": "module m\n\ngo 1.26\n", "m_test.go": "package m\n\nimport \"testing\"\n\n" + body,
		} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	const (
		pass = `func TestGood(t *testing.T) { t.Log("quiet") }` + "\n"
		skip = `func TestLame(t *testing.T) { t.Run("sub", func(t *testing.T) { t.Skip("there is no Chromium here") }) }` +
			"\n"
		fail = `func TestBad(t *testing.T) { t.Error("loud") }` + "\n"
		hang = `func TestPanics(t *testing.T) { println("last words"); panic("over") }` + "\n"
	)
	for _, tt := range []struct {
		name, body string
		code       int
		want, not  []string
	}{
		{"nothing skipped", pass, 0, []string{"ok  \tm\t", "No test was skipped."}, []string{"quiet", "=== RUN"}},
		{"skipped", pass + skip, 0,
			[]string{"ok  \tm\t", "Skipped (1):\n  m TestLame/sub: m_test.go:6: there is no Chromium here"},
			[]string{"quiet"}},
		{"failed", pass + skip + fail, 1, []string{"--- FAIL: TestBad", "loud", "FAIL\tm\t", "Skipped (1):"},
			[]string{"quiet"}},
		{"panicked", hang, 1, []string{"panic: over", "FAIL\tm\t", "No test was skipped."}, nil},
		{"does not build", "var x int = nothing\n", 1, []string{"undefined: nothing", "[build failed]"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := run([]string{"./..."}, module(tt.body), &out, &errs)
			all := out.String() + errs.String()
			if code != tt.code {
				t.Errorf("ended with %d, want %d", code, tt.code)
			}
			for _, want := range tt.want {
				if !strings.Contains(all, want) {
					t.Errorf("%q is not in\n%s", want, all)
				}
			}
			for _, not := range tt.not {
				if strings.Contains(all, not) {
					t.Errorf("%q is in\n%s", not, all)
				}
			}
		})
	}
}

// TestArguments: the race detector watches all but SQLite, and the longest packages start first.
func TestArguments(t *testing.T) {
	const root = "../.."
	for _, p := range longest {
		if tests, _ := filepath.Glob(filepath.Join(root, p, "*_test.go")); len(tests) == 0 {
			t.Errorf("%s is among the longest packages, and has no tests", p)
		}
	}
	first := "./" + longest[0]
	watched := strings.Join(unwatched, " ")
	for _, tt := range []struct {
		dir  string
		args []string
		want string
	}{
		{root, []string{"./keys"}, "./keys"},
		{root, []string{"-race", "./keys"}, watched + " -race ./keys"},
		{root, []string{"-short", "./..."}, "-short " + strings.Join(present(root), " ") + " ./..."},
		{t.TempDir(), []string{"./..."}, "./..."},
	} {
		want := "test -json " + together() + " " + tt.want
		if got := strings.Join(arguments(tt.args, tt.dir), " "); got != want {
			t.Errorf("%v in %s: got %s, want %s", tt.args, tt.dir, got, want)
		}
	}
	if got := arguments([]string{"./..."}, root); got[3] != first {
		t.Errorf("got %v, want %s first", got, first)
	}
}

// TestRacesAreSeen: two goroutines that share a variable around a store in SQLite are reported,
// though SQLite itself is not watched.
func TestRacesAreSeen(t *testing.T) {
	var out, errs bytes.Buffer
	code := run([]string{"-race", "-count=1", "./testdata/race"}, ".", &out, &errs)
	if all := out.String() + errs.String(); code == 0 || !strings.Contains(all, "DATA RACE") {
		t.Errorf("ended with %d, want a race to be reported:\n%s", code, all)
	}
}
