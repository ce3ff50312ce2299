package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// stiff matches wording that an English reader has to read twice. A match is a sign, not a proof:
// rewrite the sentence for its reader.
var stiff = regexp.MustCompile(strings.Join([]string{
	`\b(?:is|are|as|to|for|by|than|in|from|and|of) (?:that|those) of\b`,
	`\bthe ones? (?:that|of|with|from)\b`,
	`\bof (?:ours|yours|theirs)\b`,
	`\bof (?:its|our|their|one's) own\b`,
	`\b(?:of|from) before\b`,
	`\b(?:is|are|was|were) told\b`,
	`\btells? of\b`,
	`\b(?:is|are|was|were) no (?:[a-kn-z]|m[a-n]|l[a-np-z])[a-z]+(?:[.,;:]|$)`, // not "no more", "no longer"
	`\b(?:is|are) none\b`,
	`\b(?:nothing|none|nobody) (?:is|are|does|has|can|may)\b`,
	`\b[Ww]hat (?:waits|fails|rests|follows|(?:is|was) [a-z]+ed (?:is|was|may|can|must|stays))\b`,
	`\bbe had\b|\brests? on\b|\bat hand\b|\bfor good\b|\bcomes? to nothing\b|\bstands? in\b`,
	`\b(?:anew|whoever|whomever|thereby|wherein)\b`,
}, "|"))

// Bounds of the lines with such wording, in 1,000 lines of one kind.
const (
	stiffComments = 20
	stiffMessages = 15
	stiffProse    = 15
)

// proseDebts lists the pages that exceed stiffProse, with their number of lines. It may only shrink.
var proseDebts = map[string]int{"docs/decisions/ways-in.md": 5, "docs/threat-model.md": 5}

// plainWords checks the comments, and the texts of errors and log lines, of each package. In a small
// package, two lines are permitted.
func plainWords(m module) (bad []string) {
	type tally struct{ lines, marked int }
	comments, messages := map[string]*tally{}, map[string]*tally{}
	count := func(in map[string]*tally, dir, text string) {
		t := in[dir]
		if t == nil {
			t = &tally{}
			in[dir] = t
		}
		t.lines++
		if stiff.MatchString(text) {
			t.marked++
		}
	}
	for _, f := range m.files {
		for _, g := range f.syntax.Comments {
			for line := range strings.SplitSeq(strings.TrimSpace(g.Text()), "\n") {
				count(comments, f.dir(), line)
			}
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if text, ok := messageOf(n); ok {
				count(messages, f.dir(), text)
			}
			return true
		})
	}
	report := func(in map[string]*tally, what string, most int) {
		for _, dir := range slices.Sorted(maps.Keys(in)) {
			if t := in[dir]; t.marked > max(2, t.lines*most/1000) {
				bad = append(bad, fmt.Sprintf("%s: %d of %d %s read as translated, see stiff in words_test.go",
					dir, t.marked, t.lines, what))
			}
		}
	}
	report(comments, "comment lines", stiffComments)
	report(messages, "messages", stiffMessages)
	return bad
}

// messageOf returns the text of a call that makes an error or a line of a log or a test.
func messageOf(n ast.Node) (string, bool) {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return "", false
	}
	switch name := lastName(call.Fun); name {
	case "New", "Errorf", "Fatalf", "Error", "Fatal", "NewError", "Warn", "Info", "Printf", "Println":
	default:
		return "", false
	}
	for _, a := range call.Args {
		if lit, ok := a.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			text, err := strconv.Unquote(lit.Value)
			return text, err == nil && len(text) >= 12
		}
	}
	return "", false
}

// TestProseIsPlain does the same for documents.
func TestProseIsPlain(t *testing.T) {
	pages := readTree(t).pages
	for _, page := range slices.Sorted(maps.Keys(pages)) {
		lines, marked := stiffLines(pages[page])
		most := max(2, lines*stiffProse/1000)
		if debt, ok := proseDebts[page]; ok {
			if most = debt; len(marked) < debt {
				t.Errorf("%s: %d lines are left: lower its debt of %d", page, len(marked), debt)
			}
		}
		if len(marked) > most {
			t.Errorf("%s: %d of %d lines read as translated:\n%s", page, len(marked), lines, strings.Join(marked, "\n"))
		}
	}
}

// stiffLines returns the number of lines of a document outside of blocks, and those that stiff matches.
func stiffLines(text string) (lines int, marked []string) {
	block := false
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			block = !block
		case !block:
			lines++
			if stiff.MatchString(line) {
				marked = append(marked, line)
			}
		}
	}
	return lines, marked
}

func TestProseIsPlainCanFail(t *testing.T) {
	lines, marked := stiffLines("The name is that of the user.\n```sh\nthat is none\n```\nIt is no longer valid.\nIt is no key.\n")
	if want := []string{"The name is that of the user.", "It is no key."}; lines != 4 || !slices.Equal(marked, want) {
		t.Errorf("got %d lines, marked %q", lines, marked)
	}
}
