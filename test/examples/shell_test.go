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

// commands are the commands of a block of shell, one a line, with the name of the binary for
// go run.
func commands(text string) (out []string) {
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		line = strings.TrimSpace(strings.TrimPrefix(line, "$ "))
		if line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, strings.Replace(line, "go run ./cmd/mcp-authd ", "mcp-authd ", 1))
		}
	}
	return out
}

// checkShell: the commands of mcp-authd exist, with their flags, and what else is called is
// known here. TestManualRuns runs them.
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

// TestShell: a command or a flag that there is not is found.
func TestShell(t *testing.T) {
	if _, err := help(program.Authd(t), []string{"usr", "add"}); err == nil {
		t.Error("usr add has a help text")
	}
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
