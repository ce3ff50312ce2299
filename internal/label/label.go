// Package label makes names safe to show. Users and applications choose names, which are then shown
// on pages, in mails and in terminals, between words of the server.
package label

import (
	"slices"
	"strings"
	"unicode"
)

// Blank reports whether r takes room but is not visible. Unicode classifies the last six as letters
// and symbols.
func Blank(r rune) bool {
	return unicode.IsSpace(r) || unicode.Is(unicode.Z, r) ||
		slices.Contains([]rune{'\u115F', '\u1160', '\u17B4', '\u2800', '\u3164', '\uFFA0'}, r)
}

// Invisible reports whether r is a control, format (bidirectional, zero-width, tag), private-use or
// surrogate character, the combining grapheme joiner, or a non-character.
func Invisible(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs) || r == '\u034F' || r&0xFFFE == 0xFFFE
}

// Visible returns a name without invisible characters, and with one space for each run of blanks.
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
