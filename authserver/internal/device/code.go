package device

import (
	"crypto/rand"
	"math/big"
	"strings"
)

// alphabet is that of user codes: consonants, of which no two look alike and which make no words
// (RFC 8628 §6.1).
const alphabet = "BCDFGHJKLMNPQRSTVWXZ"

// codeLength gives 34 bits, of which a limited number of guesses finds nothing in ten minutes.
const codeLength = 8

// digits begin the code of a browser that is to be signed in, so that it is never one of a device:
// these have letters alone. No two look alike.
const digits = "2345679"

// newSignInCode returns a random code of a browser, as it is compared: 33 bits.
func newSignInCode() string {
	digit, err := rand.Int(rand.Reader, big.NewInt(int64(len(digits))))
	if err != nil {
		panic("device: " + err.Error()) // rand.Reader never fails
	}
	return digits[digit.Int64():][:1] + newUserCode()[1:]
}

// IsSignIn reports whether what was typed looks like the code of a browser.
func IsSignIn(typed string) bool {
	code := Read(typed)
	return code != "" && strings.Contains(digits, code[:1])
}

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
	if len(code) != codeLength || strings.Trim(code[1:], alphabet) != "" ||
		!strings.Contains(alphabet+digits, code[:1]) {
		return ""
	}
	return code
}
