package device

import (
	"crypto/rand"
	"strings"
)

// alphabet is that of user codes: consonants, of which no two look alike and which make no words
// (RFC 8628 §6.1).
const alphabet = "BCDFGHJKLMNPQRSTVWXZ"

// codeLength gives 34 bits, of which a limited number of guesses finds nothing in ten minutes.
const codeLength = 8

// newUserCode returns a random user code, as it is compared.
func newUserCode() string {
	const fair = 256 - 256%len(alphabet)
	code := make([]byte, 0, codeLength)
	for len(code) < codeLength {
		var b [4 * codeLength]byte
		rand.Read(b[:]) // never fails
		for _, c := range b {
			if int(c) < fair && len(code) < codeLength {
				code = append(code, alphabet[int(c)%len(alphabet)])
			}
		}
	}
	return string(code)
}

// Show returns a user code as people are shown it: two groups of four.
func Show(code string) string {
	if len(code) != codeLength {
		return code
	}
	return code[:codeLength/2] + "-" + code[codeLength/2:]
}

// Read returns a user code that was typed, as it is compared: without regard to case, and to
// what stands between its letters (RFC 8628 §6.1). "" when it cannot be one.
func Read(typed string) string {
	code := strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune("-–—‐ .\t", r):
			return -1
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		}
		return r
	}, typed)
	if len(code) != codeLength || strings.Trim(code, alphabet) != "" {
		return ""
	}
	return code
}
