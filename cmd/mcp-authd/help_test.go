package main

import (
	"bytes"
	"cmp"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

// helpOf returns the help of a command.
func helpOf(t *testing.T, c *cobra.Command) string {
	t.Helper()
	var b bytes.Buffer
	c.SetOut(&b)
	if err := c.Help(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestHelp checks the form of help: first a sentence about the purpose, no types of the flag
// library, and the flags for a remote server last (DL-05).
func TestHelp(t *testing.T) {
	purpose := regexp.MustCompile(`^[A-Z][a-z]+,? [^.]{5,}[.:;]`)
	library := regexp.MustCompile(`\b(string(Array|ToString|s)|ints?|duration|value)  |\(default \[|\[flags\]\n.*\[command\]`)
	remotes := 0
	for _, c := range shown(newRootCommand(std{})) {
		text, path := helpOf(t, c), c.CommandPath()
		if !purpose.MatchString(text) && c.HasParent() || strings.HasPrefix(text, "Asks ") {
			t.Errorf("DL-05: the help of %s does not begin with its purpose:\n%s", path, text)
		}
		if found := library.FindString(text); found != "" {
			t.Errorf("DL-05: the help of %s has %q", path, found)
		}
		for line := range strings.Lines(strings.ReplaceAll(text, c.Example, "")) {
			if len(line) > helpWidth+1 && len(strings.Fields(line)) > 4 && !strings.HasPrefix(line, "  mcp-authd") {
				t.Errorf("DL-05: the help of %s has a line of %d columns: %s", path, len(line), line)
			}
		}
		if _, after, ok := strings.Cut(text, "\nFlags for a remote server:\n"); ok {
			remotes++
			if strings.Contains(after, "Flags:") || !strings.HasPrefix(after, "      --remote URL ") {
				t.Errorf("DL-05: the flags for a remote server are not last:\n%s", text)
			}
		}
	}
	if remotes < 50 {
		t.Errorf("DL-05: %d commands have flags for a remote server", remotes)
	}
}

// TestHelpNames checks that help names no operation that is not a command, and no flag that no
// command has (RU-13).
func TestHelpNames(t *testing.T) {
	root, flags := newRootCommand(std{}), map[string]bool{"--help": true}
	for _, c := range shown(root) {
		c.Flags().VisitAll(func(f *pflag.Flag) { flags["--"+f.Name] = true })
	}
	var operations []*regexp.Regexp
	for _, v := range admin.All() {
		name := v.Spec().Name
		if _, rest, err := root.Find(strings.Fields(name)); err != nil || len(rest) > 0 {
			operations = append(operations, regexp.MustCompile(`(^|\W)`+name+`($|[^\w-])`))
		}
	}
	if len(operations) == 0 {
		t.Error("each operation is a command: is this the list of operations?")
	}
	named := regexp.MustCompile(`(?:^|\s)(--[a-z][a-z-]*)`)
	for _, c := range shown(root) {
		text := helpOf(t, c)
		for _, operation := range operations {
			if found := operation.FindString(text); found != "" {
				t.Errorf("RU-13: the help of %s names the operation %q, which is not a command", c.CommandPath(), found)
			}
		}
		for _, flag := range named.FindAllStringSubmatch(cmp.Or(c.Long, c.Short), -1) {
			if !flags[flag[1]] {
				t.Errorf("RU-13: the help of %s names %s, which no command has", c.CommandPath(), flag[1])
			}
		}
	}
}

// TestValueNames checks that each flag has one name for its value (DL-05).
func TestValueNames(t *testing.T) {
	used := map[string]bool{}
	for _, c := range shown(newRootCommand(std{})) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			value := valueName(c, f)
			if value == f.Value.Type() {
				t.Errorf("DL-05: --%s of %s has no name for its value", f.Name, c.CommandPath())
			}
			if value != "" {
				used[value+" "+f.Name] = true
			}
		})
	}
	names := map[string]string{}
	for value, flags := range valueNames {
		for _, flag := range flags {
			name := flag[strings.LastIndex(flag, " ")+1:] // without a command
			if !used[value+" "+strings.TrimPrefix(name, "--")] {
				t.Errorf("DL-05: no command has the flag %q with the value %s", flag, value)
			}
			if other, twice := names[flag]; twice {
				t.Errorf("DL-05: the value of %q has two names: %s and %s", flag, value, other)
			}
			names[flag] = value
		}
	}
}
