package archtest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// proseColumns is the width at which the prose of documents wraps.
const proseColumns = 100

// contentsEntry is a line that is a link to a heading of its own page.
var contentsEntry = regexp.MustCompile(`^ *\* \[[^\]]+\]\(#[^)]+\)$`)

// TestProseWraps fails when a line of prose in a document is too long to be read beside code,
// or to be compared in a review. A row of a table, a block of code, a heading, an entry of a table
// of contents and a line that is one word, as a link is, cannot be wrapped.
func TestProseWraps(t *testing.T) {
	for page, text := range readTree(t).pages {
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
