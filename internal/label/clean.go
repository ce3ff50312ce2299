package label

import (
	"strings"
	"unicode"
)

// Claim is Clean for a name that an application or a user chose, to be shown between our quotation
// marks. It removes quotation marks of any kind, because they could end the quotation and continue
// in our words. An apostrophe within a word stays.
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

// quotation reports whether r is, or looks like, a quotation mark.
func quotation(r rune) bool {
	return unicode.In(r, unicode.Quotation_Mark, unicode.Pi, unicode.Pf) ||
		strings.ContainsRune("`´ʹʺʻʼʽˮ˝ʼ′″‴‵‶‷〃ʾʿ״׳", r)
}

// maxDigits limits the digits of a number in a mail, so that it cannot be a telephone number.
const maxDigits = 6

// Unlinked returns a name without addresses and telephone numbers that mail programs would link. It
// inserts a space, or removes digits.
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

// joins reports whether r separates the parts of an address, even after a program normalizes it.
func joins(r rune) bool { return strings.ContainsRune("./:@\\．。｡／：＠․", r) }

// Clean makes supplied text safe to show (AS-48). White space of any kind becomes one space.
// Characters that are invisible or reorder the line are dropped: a right-to-left override shows
// "exe.jpg" for "gpj.exe". Stacked marks are limited, because they would cover our own words. Text
// that is too long ends in an ellipsis. html/template does the escaping.
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

// isClean reports whether s is visible ASCII with single inner spaces, as most text is.
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
