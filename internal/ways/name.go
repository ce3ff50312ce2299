package ways

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName is how many characters a name has at most.
const maxName = 64

// named is the name of a way as it is stored: without what cannot be seen, which could reorder
// what stands around it, and without space at its ends.
func named(name string) (string, error) {
	name = strings.TrimSpace(strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return -1
	}, strings.ToValidUTF8(name, "")))
	if n := utf8.RuneCountInString(name); n == 0 || n > maxName {
		return "", ErrName
	}
	return name, nil
}
