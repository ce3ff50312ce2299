package label

import (
	"strings"
	"time"
	"unicode"
)

// Printable removes characters that a terminal might interpret.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
}

// PrintableLines is Printable for text with several lines.
func PrintableLines(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
}

// Moment formats a time for readers. JSON has milliseconds.
func Moment(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Local().Format("2006-01-02 15:04")
}

// FirstLine returns the first line of an error's text.
func FirstLine(err error) string { return strings.SplitN(strings.TrimSpace(err.Error()), "\n", 2)[0] }
