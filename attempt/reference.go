package attempt

import (
	"crypto/rand"
	"strings"
)

// alphabet has no two characters that people take for each other, and no vowels to make words of.
const alphabet = "23456789BCDFGHJKMNPQRTVWXZ"

const referenceLength = 8

// NewReference returns what names a request to people: eight characters that can be read aloud (OB-02).
func NewReference() string {
	out := make([]byte, 0, referenceLength)
	var random [16]byte
	for len(out) < referenceLength {
		rand.Read(random[:]) // never fails since Go 1.24
		for _, b := range random {
			if n := int(b); n < 256/len(alphabet)*len(alphabet) && len(out) < referenceLength {
				out = append(out, alphabet[n%len(alphabet)])
			}
		}
	}
	return string(out)
}

// ParseReference is the reference that a person has typed, or the id of an attempt: without regard to
// case, hyphens and spaces. It reports whether it can be one.
func ParseReference(typed string) (string, bool) {
	s := strings.ToUpper(strings.TrimSpace(typed))
	s = strings.NewReplacer("-", "", " ", "").Replace(strings.TrimPrefix(s, strings.ToUpper(idPrefix)))
	if len(s) != referenceLength || strings.Trim(s, alphabet) != "" {
		return "", false
	}
	return s, true
}
