package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// newManCommand returns a command for package maintainers, which is in no list of commands.
func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man DIRECTORY", Short: "Write the manual pages, one for each command", Hidden: true,
		Args: cobra.ExactArgs(1), Example: "  mcp-authd man /usr/local/share/man/man1",
		RunE: func(c *cobra.Command, args []string) error { return writeManuals(args[0], c.Root()) },
	}
}

// writeManuals writes the page of each listed command below c. Pages are reproducible byte for
// byte: they contain no date (DL-04).
func writeManuals(dir string, c *cobra.Command) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, each := range shown(c) {
		if err := os.WriteFile(filepath.Join(dir, manName(each)+".1"), manual(each), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// shown returns c and the commands below it that are not hidden.
func shown(c *cobra.Command) []*cobra.Command {
	out := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			out = append(out, shown(sub)...)
		}
	}
	return out
}

func manName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manual returns the page of one command, in man(7) macros.
func manual(c *cobra.Command) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, ".TH %s 1 \"\" mcp-authd \"mcp-authd manual\"\n", quoted(strings.ToUpper(manName(c))))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(manName(c)), roff(c.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(c.CommandPath()))
	if _, arguments, ok := strings.Cut(c.Use, " "); ok {
		fmt.Fprintf(&b, ".RI %s\n", quoted(" "+arguments))
	}
	if c.HasAvailableSubCommands() {
		b.WriteString("COMMAND\n")
	}
	if c.HasAvailableLocalFlags() {
		b.WriteString("[OPTION]...\n")
	}
	if c.Long != "" {
		b.WriteString(".SH DESCRIPTION\n")
		paragraphs(&b, c.Long)
	}
	if c.HasAvailableSubCommands() {
		b.WriteString(".SH COMMANDS\n")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() && sub.Name() != "help" {
				fmt.Fprintf(&b, ".TP\n.BR %s (1)\n%s\n", quoted(manName(sub)), roff(sub.Short))
			}
		}
	}
	options(&b, c)
	if c.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(strings.TrimRight(c.Example, "\n")))
	}
	b.WriteString(".SH EXIT STATUS\n0 after success, 1 after a failure, 2 after wrong usage.\n")
	if c.HasParent() {
		fmt.Fprintf(&b, ".SH SEE ALSO\n.BR %s (1)\n", quoted(manName(c.Parent())))
	}
	return b.Bytes()
}

func options(b *bytes.Buffer, c *cobra.Command) {
	own, remote := flagTexts(c)
	b.WriteString(".SH OPTIONS\n")
	writeOptions(b, own)
	if len(remote) > 0 {
		b.WriteString(".SH OPTIONS FOR A REMOTE SERVER\n")
		writeOptions(b, remote)
	}
}

func writeOptions(b *bytes.Buffer, flags []flagText) {
	for _, f := range flags {
		fmt.Fprintf(b, ".TP\n\\fB%s\\fR", roff(f.names()))
		if f.value != "" {
			fmt.Fprintf(b, "%s\\fI%s\\fR", f.separator(), roff(f.value))
		}
		fmt.Fprintf(b, "\n%s\n", roff(f.usage))
	}
}

// paragraphs writes text that is wrapped for a terminal. Indented lines stay as they are.
func paragraphs(b *bytes.Buffer, text string) {
	for line := range strings.Lines(strings.TrimSpace(text)) {
		switch line = strings.TrimRight(line, "\n"); {
		case line == "":
			b.WriteString(".PP\n")
		case strings.HasPrefix(line, " "):
			fmt.Fprintf(b, ".br\n%s\n.br\n", roff(line))
		default:
			fmt.Fprintf(b, "%s\n", roff(line))
		}
	}
}

// roff escapes characters with a meaning in groff: backslashes, dashes that users may copy, and a
// dot or an apostrophe at the start of a line.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

// quoted returns one argument of a macro.
func quoted(text string) string { return `"` + strings.ReplaceAll(roff(text), `"`, `\(dq`) + `"` }
