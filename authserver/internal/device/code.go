package device

import (
	"crypto/rand"
	"math/big"
	"strings"
)

// alphabet contains the characters of user codes: consonants that do not look alike and form no
// words (RFC 8628 §6.1).
const alphabet = "BCDFGHJKLMNPQRSTVWXZ"

// codeLength gives 34 bits. The permitted number of guesses in ten minutes does not find a code.
const codeLength = 8

// digits begin the code of a browser, so that it never equals a device's code, which has only
// letters. No two look alike.
const digits = "2345679"

// newSignInCode returns a random code for a browser in canonical form: 33 bits.
func newSignInCode() string {
	digit, err := rand.Int(rand.Reader, big.NewInt(int64(len(digits))))
	if err != nil {
		panic("device: " + err.Error()) // rand.Reader never fails
	}
	return digits[digit.Int64():][:1] + newUserCode()[1:]
}

// IsSignIn reports whether a typed text looks like the code of a browser.
func IsSignIn(typed string) bool {
	code := Read(typed)
	return code != "" && strings.Contains(digits, code[:1])
}

// newUserCode returns a random user code in canonical form.
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

// Show returns a user code as displayed: two groups of four.
func Show(code string) string {
	if len(code) != codeLength {
		return code
	}
	return code[:codeLength/2] + "-" + code[codeLength/2:]
}

// Read returns a typed user code in canonical form, without case and separators (RFC 8628 §6.1). It
// returns "" if the text cannot be a code.
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
	if len(code) != codeLength || strings.Trim(code[1:], alphabet) != "" ||
		!strings.Contains(alphabet+digits, code[:1]) {
		return ""
	}
	return code
}
