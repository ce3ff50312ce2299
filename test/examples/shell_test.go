package examples

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	plain   = regexp.MustCompile("(?ms)^```(?:sh|shell|console)?\n(.*?)^```")
	command = regexp.MustCompile(`^(?:go run \./cmd/mcp-authd|mcp-authd)((?: [a-z][a-z-]*)+)(.*)$`)
	flag    = regexp.MustCompile(` (--[a-z-]+)`)
)

// TestShell: the commands in README and the manual exist, with their flags (issue 11, 4.8).
func TestShell(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "mcp-authd")
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/mcp-authd").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	found := 0
	for _, path := range pages(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range plain.FindAllStringSubmatch(string(text), -1) {
			for line := range strings.Lines(strings.ReplaceAll(block[1], "\\\n", " ")) {
				m := command.FindStringSubmatch(strings.TrimSpace(strings.TrimPrefix(line, "$ ")))
				if m == nil {
					continue
				}
				found++
				t.Run(fmt.Sprint(filepath.Base(path), m[1]), func(t *testing.T) { known(t, binary, strings.Fields(m[1]), m[2]) })
			}
		}
	}
	if found < 8 {
		t.Errorf("found %d commands", found)
	}
	t.Run("what there is not fails", func(t *testing.T) {
		if _, err := help(binary, []string{"usr", "add"}); err == nil {
			t.Error("usr add has a help text")
		}
	})
}

// known fails the test for a command, or a flag of it, that there is not. What follows the
// name of a command may be an argument.
func known(t *testing.T, binary string, words []string, rest string) {
	var text string
	err := fmt.Errorf("no command")
	for n := len(words); n > 0 && err != nil; n-- {
		text, err = help(binary, words[:n])
	}
	if err != nil {
		t.Fatalf("mcp-authd %s: %v", strings.Join(words, " "), err)
	}
	own, _, _ := strings.Cut(rest, " -- ") // of a program behind the gateway
	for _, f := range flag.FindAllStringSubmatch(own, -1) {
		if !strings.Contains(text, f[1]) {
			t.Errorf("mcp-authd %s has no %s", strings.Join(words, " "), f[1])
		}
	}
}

// help is the help of the command with this very name.
func help(binary string, words []string) (string, error) {
	out, err := exec.Command(binary, append(append([]string{}, words...), "--help")...).CombinedOutput()
	if err == nil && !strings.Contains(string(out), "mcp-authd "+strings.Join(words, " ")) {
		err = fmt.Errorf("it is no command")
	}
	return string(out), err
}
