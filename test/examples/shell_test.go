package examples

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
)

var (
	command = regexp.MustCompile(`^mcp-authd((?: [a-z][a-z-]*)+)(.*)$`)
	flag    = regexp.MustCompile(` (--[a-z-]+)`)
)

// built matches the ways to start the program in a clone.
var built = regexp.MustCompile(`^(?:go run \./cmd/|bin/)mcp-authd `)

// commands returns the commands of a shell block, one per line, with the name of the binary instead
// of go run or its path in a clone.
func commands(text string) (out []string) {
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		line = strings.TrimSpace(strings.TrimPrefix(line, "$ "))
		if line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, built.ReplaceAllString(line, "mcp-authd "))
		}
	}
	return out
}

// checkShell checks that the commands of mcp-authd exist with their flags, and that other programs
// are known. TestManualRuns runs them.
func checkShell(t *testing.T, b block) {
	for _, line := range commands(b.text) {
		if m := command.FindStringSubmatch(line); m != nil {
			known(t, program.Authd(t), strings.Fields(m[1]), m[2])
		} else if programs.MatchString(line) {
			if err := checkForm(line); err != nil {
				t.Error(err)
			}
		} else if _, ok := notRun(line); !ok {
			t.Errorf("nothing here knows how to check %q", line)
		}
	}
}

// TestShell checks that an unknown command or flag is found.
func TestShell(t *testing.T) {
	if _, err := help(program.Authd(t), []string{"usr", "add"}); err == nil {
		t.Error("usr add has a help text")
	}
}

// known fails the test for an unknown command or flag. Words after the name of a command may be
// arguments.
func known(t *testing.T, binary string, words []string, rest string) {
	var text string
	err := fmt.Errorf("no command")
	for n := len(words); n > 0 && err != nil; n-- {
		text, err = help(binary, words[:n])
	}
	if err != nil {
		t.Fatalf("mcp-authd %s: %v", strings.Join(words, " "), err)
	}
	own, _, _ := strings.Cut(rest, " -- ") // without the command of a program behind the gateway
	for _, f := range flag.FindAllStringSubmatch(own, -1) {
		if !strings.Contains(text, f[1]) {
			t.Errorf("mcp-authd %s has no %s", strings.Join(words, " "), f[1])
		}
	}
}

// help returns the help of exactly this command.
func help(binary string, words []string) (string, error) {
	out, err := exec.Command(binary, append(append([]string{}, words...), "--help")...).CombinedOutput()
	if err == nil && !strings.Contains(string(out), "mcp-authd "+strings.Join(words, " ")) {
		err = fmt.Errorf("it must be a command")
	}
	return string(out), err
}
