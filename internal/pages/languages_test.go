package pages

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/mcp-authd/mcp-authd/internal/text"
)

var (
	supplied = regexp.MustCompile(`(?s)<(?:bdi|code|svg|textarea|option)\b.*?</(?:bdi|code|svg|textarea|option)>`) // names, addresses, commands
	between  = regexp.MustCompile(`>([^<>]+)<`)
)

// spokenWords returns the words on a page that are not values.
func spokenWords(body string) (out []string) {
	for _, m := range between.FindAllStringSubmatch(supplied.ReplaceAllString(body, "<>"), -1) {
		s := strings.TrimSpace(m[1])
		if strings.ContainsFunc(s, unicode.IsLetter) && s != strings.ToUpper(s) || strings.ContainsFunc(s, han) {
			out = append(out, s)
		}
	}
	return out
}

// han reports a letter of a script without capitals. A word in capitals only is a code.
func han(r rune) bool { return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) }

// PE-13: every page is complete in every language, with nothing left in English. A word may be the
// same in both if the catalogue has it so.
func TestNothingIsLeftInEnglish(t *testing.T) {
	english := newPages(t, Config{})
	for _, tag := range english.Languages() {
		if tag == text.Default {
			continue
		}
		p, same := spoken(t, tag), wordsOf(t, tag)
		for _, s := range samples() {
			body := record(p, s.show).Body.String()
			if !strings.Contains(body, "</html>") || strings.Contains(body, "<no value>") {
				t.Errorf("PE-13: %s is not whole in %s", s.name, tag)
			}
			found := spokenWords(body)
			for _, w := range spokenWords(record(english, s.show).Body.String()) {
				if slices.Contains(found, w) && !slices.Contains(same, w) && w != "mcp-authd" && w != "MCP server" {
					t.Errorf("PE-13: %s in %s has English: %q", s.name, tag, w)
				}
			}
		}
	}
}

// wordsOf returns the words in the texts of a language.
func wordsOf(t *testing.T, tag string) (out []string) {
	l := spoken(t, tag).language
	for _, key := range l.Keys() {
		e, _ := l.Entry(key)
		for _, form := range e.Forms {
			for _, piece := range form {
				out = append(out, strings.TrimSpace(piece.Words))
			}
		}
	}
	return out
}
