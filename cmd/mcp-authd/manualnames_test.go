package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

var (
	fencedBlock = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	inlineCode  = regexp.MustCompile("`([^`]+)`")
	subcommand  = regexp.MustCompile(`^[a-z][a-z-]*(\|[a-z-]+)*$`)
	// otherText matches text that looks like a command but is not: lines of doctor, reasons in the
	// audit log, and a name that a decision reserves.
	otherText = regexp.MustCompile(`^(trust (agents|ci|company|gitlab|pods)|(user|client) (deleted|disabled)|` +
		`resource removed|config env)$`)
)

// TestManualNamesCommands checks that each command named in a sentence of the manual exists
// (RU-13). test/examples checks the blocks of the manual.
func TestManualNamesCommands(t *testing.T) {
	pages := []string{"../../README.md", "../../SECURITY.md"}
	err := filepath.WalkDir("../../docs", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" && filepath.Base(path) != "conformance.md" {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	operations := map[string]bool{} // of the API; some are flags of a command
	for _, v := range admin.All() {
		operations[v.Spec().Name] = true
	}
	root, named := newRootCommand(std{}), 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, code := range inlineCode.FindAllStringSubmatch(fencedBlock.ReplaceAllString(string(text), ""), -1) {
			words := strings.Fields(code[1])
			name := strings.Join(words, " ")
			found, missing := namedCommand(root, words)
			if missing && !operations[name] && !otherText.MatchString(name) {
				t.Errorf("%s: names the unknown command `%s`", strings.TrimPrefix(page, "../../"), name)
			}
			if found {
				named++
			}
		}
	}
	if named < 100 {
		t.Errorf("%d commands found in the manual, want 100 or more", named)
	}
	for _, no := range []string{"user mail", "mcp-authd user mail NAME", "mcp-authd chek", "user add|mail"} {
		if _, missing := namedCommand(root, strings.Fields(no)); !missing {
			t.Errorf("%q is not found to be missing", no)
		}
	}
}

// namedCommand reports whether words are a command, and whether they look like one that does not
// exist.
func namedCommand(c *cobra.Command, words []string) (found, missing bool) {
	whole := false
	if len(words) > 0 && words[0] == "mcp-authd" {
		words, whole = words[1:], true
	}
	for ; len(words) > 0 && c.HasSubCommands() && subcommand.MatchString(words[0]); words = words[1:] {
		for name := range strings.SplitSeq(words[0], "|") {
			if !slices.Contains(subcommands(c), name) && !slices.Contains([]string{"help", "completion"}, name) {
				return false, whole || c.HasParent()
			}
		}
		next, _, err := c.Find(words[:1])
		if err != nil {
			return true, false // several
		}
		c = next
	}
	return c.HasParent(), false
}
