package main

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/testkit/pagetest"
)

var updateReference = flag.Bool("update", false, "write docs/reference/commands.md")

// TestReference checks the page about commands against the commands (DL-05).
func TestReference(t *testing.T) {
	const refresh = "go test ./cmd/mcp-authd -run TestReference"
	var b strings.Builder
	b.WriteString("# Commands\n\n<!-- Made by: " + refresh + " -update -->\n\n")
	b.WriteString(pagetest.Words("This page lists all commands with the text of `mcp-authd COMMAND --help`. To use commands with a " +
		"running or remote server, see [running, stopping and commands](../operating/commands.md) and " +
		"[the API](../api.md#from-the-command-line). Exit code 0 is success, 1 failure, 2 wrong usage."))
	root := newRootCommand(std{})
	for _, c := range shown(root)[1:] {
		writeCommand(&b, c)
	}
	b.WriteString("\n## Flags for a remote server\n\n")
	b.WriteString(pagetest.Words("Commands with these flags can run on a server elsewhere, after you sign in there. [The API]" +
		"(../api.md#from-the-command-line) describes the credentials for scripts."))
	list, _, err := root.Find([]string{"user", "list"})
	if err != nil {
		t.Fatal(err)
	}
	_, remote := flagTexts(list)
	writeFlags(&b, remote)
	pagetest.Is(t, *updateReference, "reference/commands.md", b.String(), refresh)
}

func writeCommand(b *strings.Builder, c *cobra.Command) {
	name := strings.TrimPrefix(c.CommandPath(), "mcp-authd ")
	fmt.Fprintf(b, "\n%s %s\n\n%s.\n", strings.Repeat("#", strings.Count(name, " ")+2), name,
		strings.TrimSuffix(c.Short, "."))
	if c.HasAvailableSubCommands() {
		return
	}
	_, arguments, _ := strings.Cut(c.Use, " ")
	fmt.Fprintf(b, "\n    %s\n", strings.TrimSpace(c.CommandPath()+" "+arguments))
	if long := strings.TrimSpace(strings.TrimPrefix(c.Long, c.Short+".")); long != "" {
		b.WriteString("\n" + paragraphsOf(long))
	}
	if c.Example != "" {
		b.WriteString("\nFor example:\n\n" + indented(c.Example))
	}
	own, remote := flagTexts(c)
	own = slices.DeleteFunc(own, func(f flagText) bool { return f.name == "help" })
	writeFlags(b, own)
	if len(remote) > 0 {
		b.WriteString("\nIt also takes the [flags for a remote server](#flags-for-a-remote-server).\n")
	}
}

func writeFlags(b *strings.Builder, flags []flagText) {
	for i, f := range flags {
		if i == 0 {
			b.WriteString("\n| flag | |\n|---|---|\n")
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", f.names()+f.separator()+f.value, pagetest.Cell(markdownText(f.usage)))
	}
}

// paragraphsOf converts text that is wrapped for a terminal to prose. Indented lines stay as they
// are.
func paragraphsOf(text string) string {
	var b strings.Builder
	for i, part := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			b.WriteString("\n")
		}
		prose, rest, found := strings.Cut(part, "\n  ")
		if strings.HasPrefix(part, " ") {
			prose, rest, found = "", part, true
		}
		b.WriteString(pagetest.Words(markdownText(prose)))
		if found {
			b.WriteString("\n" + indented("  "+rest))
		}
	}
	return b.String()
}

// indented returns a block of text as printed.
func indented(text string) string {
	text = strings.Trim(text, "\n")
	least := len(text)
	for line := range strings.Lines(text) {
		if trimmed := strings.TrimLeft(line, " "); strings.TrimSpace(line) != "" {
			least = min(least, len(line)-len(trimmed))
		}
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n ")
		if line != "" {
			line = "    " + line[min(least, len(line)):]
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// markdownText escapes text for Markdown.
func markdownText(text string) string {
	return strings.NewReplacer("<", `\<`, "*", `\*`, "_", `\_`, "[", `\[`).Replace(text)
}

// TestExamples checks that each command has an example, and that the commands and flags in examples
// exist (DL-05).
func TestExamples(t *testing.T) {
	root := newRootCommand(std{})
	examples := 0
	for _, c := range shown(root)[1:] {
		if c.Runnable() && !c.HasAvailableSubCommands() && c.Example == "" && c.Parent().Name() != "completion" {
			t.Errorf("DL-05: %s has no example", c.CommandPath())
		}
		for line := range strings.Lines(c.Example) {
			for _, finding := range wrongExample(root, line) {
				t.Errorf("DL-05: the example of %s: %s", c.CommandPath(), finding)
			}
			examples++
		}
	}
	if examples < 80 {
		t.Errorf("there are %d lines of examples", examples)
	}
	for line, want := range map[string]string{
		"  mcp-authd usr list":                         "usr",
		"  mcp-authd user list --nme bob":              "--nme",
		"  MCP_AUTHD_REMOTE=x mcp-authd user list":     "",
		"  mcp-authd protect -- program --its-own 'x'": "",
	} {
		got := strings.Join(wrongExample(root, line), "; ")
		if !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}

// wrongExample returns the unknown names in a line of an example.
func wrongExample(root *cobra.Command, line string) (bad []string) {
	_, call, ours := strings.Cut(line, "mcp-authd ")
	if !ours {
		return nil
	}
	return unknownNames(root, call)
}
