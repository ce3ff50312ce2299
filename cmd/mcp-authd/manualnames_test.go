package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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
	// otherFlag matches flags of other programs, and otherPages the pages that are about their flags.
	otherFlag  = regexp.MustCompile(`^--(service-account-issuer|stop-timeout|relogin|ha)$`)
	otherPages = regexp.MustCompile(`^docs/(clients|migrate)/`)
	// prose matches words after the name of the program that are not a command.
	prose = regexp.MustCompile(`^(administration|can|command|does|gateway|into|is|manual|remote|replicas|state|tasks|test)\b`)
	// plainWord matches a word that can be a command. Others are placeholders.
	plainWord = regexp.MustCompile(`^[a-z][a-z-]*$`)
)

// TestManualNamesCommands checks that each command and flag named in a sentence of the manual
// exists (RU-13). test/examples checks the blocks of the manual.
func TestManualNamesCommands(t *testing.T) {
	pages := []string{
		"../../README.md", "../../SECURITY.md", "../../CONTRIBUTING.md", "../../CHANGELOG.md",
	}
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
			for _, unknown := range wrongCode(root, page, words, found) {
				t.Errorf("%s: `%s`: %s", strings.TrimPrefix(page, "../../"), name, unknown)
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

// wrongCode returns the unknown flags in code within a sentence: those of a command, and a flag
// alone that no command has.
func wrongCode(root *cobra.Command, page string, words []string, isCommand bool) []string {
	page = strings.TrimPrefix(page, "../../")
	if isCommand {
		return unknownNames(root, strings.TrimPrefix(strings.Join(words, " "), "mcp-authd "))
	}
	if len(words) == 0 || otherPages.MatchString(page) {
		return nil
	}
	flag := flagName.FindString(words[0])
	if flag == "" || otherFlag.MatchString(flag) {
		return nil
	}
	for _, c := range shown(root) {
		if c.Flags().Lookup(flag[2:]) != nil {
			return nil
		}
	}
	return []string{"no command has this flag"}
}

var flagName = regexp.MustCompile(`^--[a-z][a-z-]*`)

// unknownNames returns the command or the flags of a call that do not exist. The call is the text
// after the name of the program, and may end with other text.
func unknownNames(root *cobra.Command, call string) (bad []string) {
	call, _, _ = strings.Cut(call, " | ")
	words, c := strings.Fields(call), root
	for i, word := range words {
		word, _, _ = strings.Cut(word, "</")
		words[i] = strings.TrimRight(word, ".,;:)\"'`\\")
	}
	for len(words) > 0 && c.HasSubCommands() && plainWord.MatchString(words[0]) {
		i := slices.IndexFunc(c.Commands(), func(sub *cobra.Command) bool { return sub.Name() == words[0] })
		if i < 0 && c.Example != "" {
			break // it is an argument
		}
		if i < 0 {
			return []string{fmt.Sprintf("%s has no command %q", c.CommandPath(), words[0])}
		}
		c, words = c.Commands()[i], words[1:]
	}
	for _, word := range words {
		if word == "--" || word == "mcp-authd" {
			break // the rest is for a program, or another call
		}
		name := strings.TrimPrefix(flagName.FindString(word), "--")
		if name != "" && name != "help" && c.Flags().Lookup(name) == nil {
			bad = append(bad, fmt.Sprintf("%s has no --%s", c.CommandPath(), name))
		}
	}
	return bad
}

// TestMessagesNameCommands checks that each command and flag exists that a text of the code names
// after the name of the program: an error, advice, help, or a page (RU-13).
func TestMessagesNameCommands(t *testing.T) {
	root, named := newRootCommand(std{}), 0
	check := func(path, text string) {
		for line := range strings.Lines(text) {
			for _, call := range strings.Split(line, "mcp-authd ")[1:] {
				first, _, _ := strings.Cut(strings.TrimSpace(call), " ")
				if prose.MatchString(first) {
					continue
				}
				named++
				for _, unknown := range unknownNames(root, call) {
					t.Errorf("%s: %q: %s", strings.TrimPrefix(path, "../../"), strings.TrimSpace(call), unknown)
				}
			}
		}
	}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && slices.Contains([]string{".git", "node_modules", "testdata", "dist"}, d.Name()) {
			return filepath.SkipDir
		}
		switch extension := filepath.Ext(path); {
		case err != nil:
			return err
		case extension == ".go" && !strings.HasSuffix(path, "_test.go"):
			return eachText(path, func(text string) { check(path, text) })
		case strings.HasPrefix(path, "../../web/") && (extension == ".json" || extension == ".html"):
			text, err := os.ReadFile(path)
			check(path, string(text))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if named < 150 {
		t.Errorf("%d commands found in messages, want 150 or more", named)
	}
	for call, want := range map[string]string{
		"usr list": `no command "usr"`, "user lst.": `no command "lst"`, "user list --nme x": "no --nme",
		"grant revoke --from-log.": "", "user links alice": "", "%s": "", "setup-link</code>": "",
		"protect -- program --its-own": "", "keys rotate --now; then wait": "",
	} {
		got := strings.Join(unknownNames(root, call), "; ")
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q", call, got, want)
		}
	}
}

// eachText calls do with each text in a file of Go.
func eachText(path string, do func(string)) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		text, isText := literal(e)
		if isText {
			do(text)
		}
		return !isText
	})
	return nil
}

// literal returns the text of an expression, with a placeholder for each part that is not a
// constant.
func literal(e ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, e.Kind == token.STRING && err == nil
	case *ast.BinaryExpr:
		left, isText := literal(e.X)
		right, isAlso := literal(e.Y)
		if e.Op != token.ADD || !isText && !isAlso {
			return "", false
		}
		if !isText {
			left = "X"
		}
		if !isAlso {
			right = "X"
		}
		return left + right, true
	}
	return "", false
}
