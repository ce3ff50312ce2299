// Package label knows which characters of a name can be seen. Names that people and applications
// give stand on pages, in letters and in terminals, between words of ours.
package label

import (
	"slices"
	"strings"
	"unicode"
)

// Blank reports characters that look like nothing but take room; the last six are letters and
// symbols by their Unicode class.
func Blank(r rune) bool {
	return unicode.IsSpace(r) || unicode.Is(unicode.Z, r) ||
		slices.Contains([]rune{'\u115F', '\u1160', '\u17B4', '\u2800', '\u3164', '\uFFA0'}, r)
}

// Invisible reports control, format (bidirectional, zero-width, tag), private-use and
// surrogate characters, the combining grapheme joiner and non-characters.
func Invisible(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs) || r == '\u034F' || r&0xFFFE == 0xFFFE
}

// Visible is a name without what cannot be seen, and with one space for each run of blanks.
func Visible(name string) string {
	seen := strings.Map(func(r rune) rune {
		switch {
		case Blank(r):
			return ' '
		case Invisible(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, ""))
	return strings.Join(strings.Fields(seen), " ")
}
