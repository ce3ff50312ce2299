package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestCompare checks that a benchmark that became ten times as slow is found, and that the
// repository is unchanged.
func TestCompare(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	put := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git := func(args ...string) string {
		t.Helper()
		args = append([]string{
			"-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main"}, args...)
		out, err := exec.Command("git", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
		return string(out)
	}
	const source = `package p
import ("testing"; "time")
func BenchmarkSlow(b *testing.B) { for range b.N { time.Sleep(SLEEP) } }
func BenchmarkSame(b *testing.B) { for range b.N { time.Sleep(2 * time.Millisecond) } }
`
	put("go.mod", "module example.com/m\n\ngo 1.24\n")
	put("p/p_test.go", strings.ReplaceAll(source, "SLEEP", "time.Millisecond"))
	git("init", "-q")
	git("add", ".")
	git("commit", "-q", "-m", "one")
	put("p/p_test.go", strings.ReplaceAll(source, "SLEEP", "10*time.Millisecond"))

	var out bytes.Buffer
	o := options{base: "HEAD", rounds: 2, match: ".", time: 30 * time.Millisecond, packages: []string{"p", "gone"}}
	if err := run(t.Context(), o, &out); err != nil {
		t.Fatal(err)
	}
	var slow, same []string
	for line := range strings.Lines(out.String()) {
		switch {
		case strings.HasPrefix(line, "p Slow") && strings.Contains(line, "ns/op"):
			slow = strings.Fields(line)
		case strings.HasPrefix(line, "p Same") && strings.Contains(line, "ns/op"):
			same = strings.Fields(line)
		}
	}
	if len(slow) == 0 || slow[len(slow)-1] != "more" {
		t.Errorf("the slower benchmark is not marked:\n%s", &out)
	}
	if len(same) == 0 {
		t.Errorf("the unchanged benchmark is missing:\n%s", &out)
	}
	if list := git("worktree", "list"); strings.Count(list, "\n") != 1 {
		t.Errorf("it left worktrees behind:\n%s", list)
	}
	o.base = "nosuch"
	if err := run(t.Context(), o, &out); err == nil ||
		!strings.Contains(err.Error(), `the commit "nosuch" cannot be read`) {
		t.Errorf("an unknown commit: %v", err)
	}
}

func TestFigures(t *testing.T) {
	before, after := figures{}, figures{}
	before.read("keys",
		"goos: linux\nBenchmarkSign/ES256-8   100   2000 ns/op   64 B/op   2 allocs/op\nBenchmarkGone-8  1  5 ns/op\nPASS\n")
	after.read("keys", "BenchmarkSign/ES256-2   100   1000 ns/op   64 B/op   3 allocs/op\n")
	both, only := compare([]figures{before}, []figures{after})
	if len(both) != 3 || len(only) != 1 || only[0] != "keys Gone" {
		t.Fatalf("got %v and %v", both, only)
	}
	want := map[string]struct {
		ratio float64
		mark  string
	}{"ns/op": {0.5, "less"}, "B/op": {1, ""}, "allocs/op": {1.5, "more"}}
	for _, c := range both {
		if w := want[c.unit]; c.benchmark != "keys Sign/ES256" || c.ratio != w.ratio || c.mark() != w.mark {
			t.Errorf("%v: ratio %v, mark %q; want %v", c.figure, c.ratio, c.mark(), w)
		}
	}
}
