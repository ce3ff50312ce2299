package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

// TestHelp checks the form of help: first a sentence about the purpose, values with names, the
// flags for a remote server last, and no names of operations that are not commands (DL-05).
func TestHelp(t *testing.T) {
	purpose := regexp.MustCompile(`^[A-Z][a-z]+,? [^.]{5,}[.:;]`)
	library := regexp.MustCompile(`\b(string(Array|ToString|s)|ints?|duration|value)  |\(default \[|\[flags\]\n.*\[command\]`)
	root := newRootCommand(std{})
	used, remotes := map[string]bool{}, 0
	for _, c := range shown(root) {
		var b bytes.Buffer
		c.SetOut(&b)
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		text, path := b.String(), c.CommandPath()
		if !purpose.MatchString(text) && c.HasParent() || strings.HasPrefix(text, "Asks ") {
			t.Errorf("DL-05: the help of %s does not begin with its purpose:\n%s", path, text)
		}
		if found := library.FindString(text); found != "" {
			t.Errorf("DL-05: the help of %s has %q", path, found)
		}
		for line := range strings.Lines(text) {
			words := strings.Fields(line)
			if len(line) > helpWidth+1 && len(words) > 4 && !strings.HasPrefix(line, "  mcp-authd") &&
				!strings.HasPrefix(line, "  curl") {
				t.Errorf("DL-05: the help of %s has a line of %d columns: %s", path, len(line), line)
			}
		}
		for _, v := range admin.All() {
			name := v.Spec().Name
			if _, rest, err := root.Find(strings.Fields(name)); err != nil || len(rest) > 0 {
				if regexp.MustCompile(`(^|\W)` + name + `($|[^\w-])`).MatchString(text) {
					t.Errorf("DL-05: the help of %s names the operation %q, which is not a command", path, name)
				}
			}
		}
		if _, after, ok := strings.Cut(text, "\nFlags for a remote server:\n"); ok {
			remotes++
			if strings.Contains(after, "Flags:") || !strings.HasPrefix(after, "      --remote URL ") {
				t.Errorf("DL-05: the flags for a remote server are not last:\n%s", text)
			}
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			value := valueName(c, f)
			if value == f.Value.Type() {
				t.Errorf("DL-05: --%s of %s has no name for its value", f.Name, path)
			}
			if value != "" {
				used[value+" "+f.Name] = true
			}
		})
	}
	if remotes < 50 {
		t.Errorf("DL-05: %d commands have flags for a remote server", remotes)
	}
	seen := map[string]string{}
	for value, flags := range valueNames {
		for _, flag := range flags {
			name := flag[strings.LastIndex(flag, " ")+1:] // without a command
			if !used[value+" "+strings.TrimPrefix(name, "--")] {
				t.Errorf("DL-05: no command has the flag %q with the value %s", flag, value)
			}
			if other, twice := seen[flag]; twice {
				t.Errorf("DL-05: the value of %q has two names: %s and %s", flag, value, other)
			}
			seen[flag] = value
		}
	}
}
