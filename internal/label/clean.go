package label

import (
	"strings"
	"unicode"
)

// Claim is Clean for a name that an application or a person chose, and that stands between quotation
// marks of ours: it has none, of any kind, with which it could end them and go on in our words. An
// apostrophe within a word stays.
func Claim(s string, limit int) string { return Clean(unquote(s), limit) }

func unquote(s string) string {
	runes := []rune(s)
	var out []rune
	for i, r := range runes {
		apostrophe := (r == '\'' || r == '’') && i > 0 && i+1 < len(runes) && unicode.IsLetter(runes[i-1]) &&
			unicode.IsLetter(runes[i+1])
		if !quotation(r) || apostrophe {
			out = append(out, r)
		}
	}
	return string(out)
}

// quotation reports quotation marks, and what looks like one.
func quotation(r rune) bool {
	return unicode.In(r, unicode.Quotation_Mark, unicode.Pi, unicode.Pf) ||
		strings.ContainsRune("`´ʹʺʻʼʽˮ˝ʼ′″‴‵‶‷〃ʾʿ״׳", r)
}

// maxDigits is how many digits of a number stand in a name in a letter: fewer than those of a telephone.
const maxDigits = 6

// Unlinked is a name of which mail programs make no link: no address, and no telephone number. What
// they take for one has a space in it, or fewer digits.
func Unlinked(s string) string {
	var out []rune
	digits, runes := 0, []rune(s)
	for i, r := range runes {
		switch {
		case unicode.IsDigit(r):
			if digits++; digits == maxDigits+1 {
				out = append(out, '…')
			}
			if digits > maxDigits {
				continue
			}
		case unicode.IsLetter(r):
			digits = 0
		}
		out = append(out, r)
		if joins(r) && i+1 < len(runes) && !Blank(runes[i+1]) && !unicode.IsDigit(runes[i+1]) {
			out = append(out, ' ')
		}
	}
	return string(out)
}

// joins reports what stands between the parts of an address, also where a program normalizes it.
func joins(r rune) bool { return strings.ContainsRune("./:@\\．。｡／：＠․", r) }

// Clean makes supplied text fit to be read (AS-48): white space of every kind becomes one
// space, characters that are invisible or reorder the line are dropped (a
// right-to-left override shows "exe.jpg" where "gpj.exe" stands), stacked marks are
// limited (they would paint over our own words), and what is too long ends in an
// ellipsis. Escaping is left to html/template.
func Clean(s string, limit int) string {
	if len(s) <= limit && isClean(s) {
		return s
	}
	var out []rune
	marks, space := 0, false
	for _, r := range s {
		switch {
		case Blank(r):
			space = len(out) > 0
			continue
		case Invisible(r):
			continue
		case unicode.Is(unicode.M, r):
			if marks++; marks > 2 || len(out) == 0 || space {
				continue
			}
		default:
			marks = 0
		}
		if space {
			out, space = append(out, ' '), false
		}
		if out = append(out, r); len(out) > limit {
			return strings.TrimRight(string(out[:limit-1]), " ") + "…"
		}
	}
	return string(out)
}

// isClean reports text of visible ASCII with single spaces within: most of it is.
func isClean(s string) bool {
	space := true
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' || space && s[i] == ' ' {
			return false
		}
		space = s[i] == ' '
	}
	return s == "" || !space
}
