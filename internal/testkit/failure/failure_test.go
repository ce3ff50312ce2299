package failure

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// failed is a testing.TB that reports a failure without failing the real test.
type failed struct {
	testing.TB
	logs []string
	ends []func()
}

func (f *failed) Name() string                 { return "TestX/AS-1 a name: of/\"words\"" }
func (f *failed) Failed() bool                 { return true }
func (f *failed) Logf(format string, a ...any) { f.logs = append(f.logs, format) }
func (f *failed) Cleanup(end func())           { f.ends = append(f.ends, end) }

func TestFailedTestLeavesFiles(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "a", "b")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, mod := range []string{root, filepath.Join(root, "a")} {
		if err := os.WriteFile(filepath.Join(mod, "go.mod"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	f := &failed{TB: t}
	text := strings.Repeat("line\n", 100)
	Log(f, "server.log", func() string { return text })
	Log(f, "server.log", func() string { return "another" })
	Goroutines(f)
	for _, end := range f.ends {
		end()
	}
	kept := filepath.Join(root, "test", "out", "a", "b", "TestX.AS-1_a_name__of._words_")
	for name, want := range map[string]string{
		"server.log": text, "2-server.log": "another", "goroutines.txt": "TestFailedTestLeavesFiles",
	} {
		if got, err := os.ReadFile(filepath.Join(kept, name)); err != nil || !strings.Contains(string(got), want) {
			t.Errorf("%s: %v, does not have %q:\n%s", name, err, want, got)
		}
	}
	if len(f.logs) != 5 {
		t.Errorf("logged %q, want the last lines of two logs, and three paths", f.logs)
	}
}
