package archtest

import (
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// proseColumns is the line width of documents.
const proseColumns = 100

// contentsEntry matches a line that is a link to a heading of the same page.
var contentsEntry = regexp.MustCompile(`^ *\* \[[^\]]+\]\(#[^)]+\)$`)

// TestProseWraps fails if a line of prose in a document is too long to read beside code, or to
// compare in a review. Rows of tables, code blocks, headings, entries of a table of contents, and
// lines of a single word, such as a link, cannot wrap.
func TestProseWraps(t *testing.T) {
	for page, text := range readTree(t).pages {
		if strings.HasPrefix(page, "docs/reference/") {
			continue // generated from the code, whose texts wrap for a terminal
		}
		for _, finding := range longProse(text) {
			t.Errorf("%s:%s", page, finding)
		}
	}
}

func TestProseWrapsCanFail(t *testing.T) {
	long := strings.Repeat("word ", 20) + "words"
	link := "https://example.com/" + strings.Repeat("a", 100)
	text := strings.Join([]string{
		long, "| " + long, "# " + long, "* " + link, "```sh", long, "```", "* " + long,
		strings.Repeat("é", proseColumns), "  * [" + long + "](#long)",
	}, "\n")
	got := longProse(text)
	want := []string{"1: 105 columns, the limit is 100", "8: 107 columns, the limit is 100"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func longProse(text string) (bad []string) {
	block, number := false, 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "```") {
			block = !block
		}
		if block || strings.HasPrefix(trimmed, "|") || strings.HasPrefix(trimmed, "#") {
			continue
		}
		words := strings.Fields(strings.TrimLeft(trimmed, "*- "))
		if len(words) < 2 || contentsEntry.MatchString(line) {
			continue
		}
		if columns := utf8.RuneCountInString(line); columns > proseColumns {
			bad = append(bad, fmt.Sprintf("%d: %d columns, the limit is %d", number, columns, proseColumns))
		}
	}
	return bad
}

const (
	codeColumns = 120
	tab         = 4
	// wholeText is the counted part of a long text, which could not be searched for if it were
	// split.
	wholeText = 40
)

// TestCodeWraps fails if a line of code is wider than a window. Only the first columns of a long
// quoted text count. Modules within this one belong to other programs, or are meant to be copied.
func TestCodeWraps(t *testing.T) {
	m := load(t)
	for _, f := range m.files {
		ours := slices.ContainsFunc(m.packages, func(p pkg) bool { return p.path == f.dir() })
		if !ours || ast.IsGenerated(f.syntax) {
			continue
		}
		src, err := os.ReadFile(filepath.Join("../..", f.path))
		if err != nil {
			t.Fatal(err)
		}
		for _, finding := range longCode(src) {
			t.Errorf("%s:%s", f.path, finding)
		}
	}
}

func TestCodeWrapsCanFail(t *testing.T) {
	long := strings.Repeat("x", 110)
	src := "package p\n\nvar a = `\n" + long + long + "\n`\nvar b = \"" + long + "\"\n\t\t// " + long + "\n" +
		"\tvar c" + long + " = 1 + 2\nvar d" + long + "\n"
	got, want := longCode([]byte(src)), []string{"7: 121 columns, the limit is 120", "8: 127 columns, the limit is 120"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func longCode(src []byte) (bad []string) {
	lines := strings.Split(string(src), "\n")
	spared := make([]int, len(lines)) // columns that do not count
	files := token.NewFileSet()
	file := files.AddFile("", -1, len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, scanner.ScanComments)
	for {
		pos, kind, text := s.Scan()
		if kind == token.EOF {
			break
		}
		first, last := file.Line(pos), file.Line(pos)+strings.Count(text, "\n")
		switch {
		case kind == token.STRING && first == last:
			spared[first-1] += max(0, utf8.RuneCountInString(text)-wholeText)
		case kind == token.STRING:
			for i := first - 1; i < last; i++ {
				spared[i] = utf8.RuneCountInString(lines[i])
			}
		}
	}
	for i, line := range lines {
		columns := utf8.RuneCountInString(line) + strings.Count(line, "\t")*(tab-1)
		if columns-spared[i] > codeColumns {
			bad = append(bad, fmt.Sprintf("%d: %d columns, the limit is %d", i+1, columns, codeColumns))
		}
	}
	return bad
}
