package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestMain lets go test -exec run this test program in place of report.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "run" {
		os.Exit(measure(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// moduleOf makes a module m with one test file.
func moduleOf(t *testing.T, body string) string {
	t.Helper()
	dir := t.TempDir()
	for file, text := range map[string]string{"go.mod": "module m\n\ngo 1.26\n", "m_test.go": "package m\n" + body} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestReport: make test lists the skipped tests with their reasons, and exits with the code of go
// test (issue 11, 5.5).
func TestReport(t *testing.T) {
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
		{"failed", pass + skip + fail, 1,
			[]string{"--- FAIL: TestBad", "loud", "FAIL\tm\t", "Skipped (1):", "-run '^TestBad$'"}, []string{"quiet"}},
		{"panicked", hang, 1, []string{"panic: over", "FAIL\tm\t", "No test was skipped."}, nil},
		{"does not build", "var x int = nothing\n", 1, []string{"undefined: nothing", "[build failed]"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			dir := moduleOf(t, "\nimport \"testing\"\n\n"+tt.body)
			code := run([]string{"./..."}, dir, filepath.Join(dir, "test", "out"), &out, &errs)
			all := out.String() + errs.String()
			kept, err := os.ReadFile(filepath.Join(dir, "test", "out", "m", "TestBad", "output.txt"))
			if (err == nil) != slices.Contains(tt.want, "loud") ||
				err == nil && !strings.Contains(string(kept), "loud") {
				t.Errorf("kept of the failure: %s, %v", kept, err)
			}
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
	watched := strings.Join(unwatched, " ")
	for _, tt := range []struct {
		dir  string
		args []string
		want string
	}{
		{root, []string{"./internal/keys"}, "./internal/keys"},
		{root, []string{"-race", "./internal/keys"}, watched + " -race ./internal/keys"},
	} {
		got, err := arguments(tt.args, tt.dir)
		if err != nil {
			t.Fatal(err)
		}
		if got, found := strings.CutPrefix(strings.Join(got, " "), "test -json "+together()+" -exec="); !found ||
			!strings.HasSuffix(got, " run -trimpath -ldflags=-w "+tt.want) {
			t.Errorf("%v in %s: got %s, want at its end %s", tt.args, tt.dir, got, tt.want)
		}
	}
}

// TestPackages: each package is tested once, the longest first. The Makefile tests the readers.
func TestPackages(t *testing.T) {
	watched, err := packages("../..", everything)
	if err != nil {
		t.Fatal(err)
	}
	others, err := packages("../..", programs)
	if err != nil {
		t.Fatal(err)
	}
	if watched[0] != "./internal/storage/postgres" || others[0] != "./test/e2e" ||
		!slices.Contains(watched, "./internal/keys") || !slices.Contains(others, "./test/report") ||
		slices.Contains(watched, "./internal/archtest") {
		t.Errorf("got %v and %v", watched, others)
	}
	list, err := exec.Command("go", "list", "-C", "../..", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Concat(watched, others, readers)
	once := slices.Compact(slices.Sorted(slices.Values(all)))
	if listed := len(strings.Fields(string(list))); len(once) != len(all) || len(all) != listed {
		t.Errorf("%d packages, %d of them different, of %d", len(all), len(once), listed)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range append(readers, "...", "test/...") {
		if !strings.Contains(string(makefile), " ./"+p) {
			t.Errorf("the Makefile does not test %s", p)
		}
	}
}

// TestSecondLane: make test-all finds the tests that make test leaves to it.
func TestSecondLane(t *testing.T) {
	dir := t.TempDir()
	for file, body := range map[string]string{
		"a_test.go":              `func TestA(t *testing.T) { t.Run("x", func(t *testing.T) { lane.Long(t, "") }) }`,
		"a_other_test.go":        `func TestB(t *testing.T) {}`,
		"b/b_test.go":            `func TestC(t *testing.T) { lane.Long(t, "") }`,
		"c/c_test.go":            `func TestD(t *testing.T) { lane.Short(t, "") }`,
		"c/testdata/d_test.go":   `func TestE(t *testing.T) { lane.Long(t, "") }`,
		"node_modules/e_test.go": `func TestF(t *testing.T) { lane.Long(t, "") }`,
	} {
		file = filepath.Join(dir, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("package p\n"+body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := arguments([]string{"-long", "-race"}, dir)
	if want := "-run=^(TestA|TestC)$ -race ./. ./b"; err != nil || !strings.HasSuffix(strings.Join(got, " "), want) {
		t.Errorf("got %q, %v, want at its end %q", got, err, want)
	}
	if _, err := arguments([]string{"-long"}, t.TempDir()); err == nil {
		t.Error("a second lane without a test must be an error")
	}
	helper := []byte("package p\nfunc helper() { lane.Long(nil, \"\") }")
	if err := os.WriteFile(filepath.Join(dir, "helper_test.go"), helper, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := arguments([]string{"-long"}, dir); err == nil || !strings.Contains(err.Error(), "must be a test") {
		t.Errorf("a helper that calls lane.Long: got %v", err)
	}
}

// TestProcessorTime: the processor time of a test includes its child processes.
func TestProcessorTime(t *testing.T) {
	if processorTime(os.Getpid()) == 0 {
		t.Skip("processor time of tests is known on Linux alone")
	}
	const busy = `
import "testing"
import "os/exec"
func TestRests(t *testing.T) {}
func TestBusy(t *testing.T) {
	if err := exec.Command("sh", "-c", "i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done").Run(); err != nil {
		t.Fatal(err)
	}
}
`
	dir := t.TempDir()
	if err := os.Rename(moduleOf(t, busy), filepath.Join(dir, "m")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"),
		[]byte("module github.com/mcp-authd/mcp-authd\n\ngo 1.26\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "m", "go.mod")); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := run([]string{"-count=1", "./..."}, dir, t.TempDir(), &out, &errs); code != 0 {
		t.Fatalf("ended with %d: %s%s", code, &out, &errs)
	}
	if row := regexp.MustCompile(`(?m)^ *[0-9.]+ +(0\.[1-9]|[1-9][0-9]*\.[0-9]) +m TestBusy$`); !row.MatchString(out.String()) {
		t.Errorf("no row matches %s:\n%s", row, &out)
	}
}

// TestRacesAreSeen: a race between goroutines that use a SQLite store is reported, though SQLite itself
// is not watched.
func TestRacesAreSeen(t *testing.T) {
	t.Setenv("CGO_ENABLED", "1") // the race detector needs it
	var out, errs bytes.Buffer
	code := run([]string{"-race", "-count=1", "./testdata/race"}, ".", t.TempDir(), &out, &errs)
	if all := out.String() + errs.String(); code == 0 || !strings.Contains(all, "DATA RACE") {
		t.Errorf("ended with %d, want a race to be reported:\n%s", code, all)
	}
}
