// Package reference makes what names a request to people: eight letters and digits that can be read aloud, and
// for the requests of a resource server in another process four before them that are its own. It imports the
// standard library only, since the package that tool authors link rests on it.
package reference

import (
	"crypto/rand"
	"crypto/sha256"
	"strings"
)

// alphabet has no two characters that people take for each other, and no vowels to make words of.
const alphabet = "23456789BCDFGHJKMNPQRTVWXZ"

const (
	length     = 8
	markLength = 4
)

// New returns a reference of a request to the authorization server, or to an MCP server in its process (OB-02).
func New() string {
	out := make([]byte, 0, length)
	var random [16]byte
	for len(out) < length {
		rand.Read(random[:]) // never fails since Go 1.24
		for _, b := range random {
			if n := int(b); n < 256/len(alphabet)*len(alphabet) && len(out) < length {
				out = append(out, alphabet[n%len(alphabet)])
			}
		}
	}
	return string(out)
}

// NewOf returns a reference of a request to a resource server in another process, which is a client of the
// authorization server. It begins with a mark of that client, so that it cannot be one of another's.
func NewOf(client string) string { return mark(client) + New() }

// IsOf reports whether a reference is one of a client, as NewOf makes them.
func IsOf(reference, client string) bool {
	rest, marked := strings.CutPrefix(reference, mark(client))
	return marked && len(rest) == length && strings.Trim(rest, alphabet) == ""
}

// Parse is the reference that a person has typed, without regard to case, hyphens and spaces. It reports
// whether it can be one.
func Parse(typed string) (string, bool) {
	s := strings.NewReplacer("-", "", " ", "").Replace(strings.ToUpper(strings.TrimSpace(typed)))
	if len(s) != length && len(s) != markLength+length || strings.Trim(s, alphabet) != "" {
		return "", false
	}
	return s, true
}

func mark(client string) string {
	sum, out := sha256.Sum256([]byte("reference of "+client)), make([]byte, markLength)
	for i := range out {
		out[i] = alphabet[int(sum[i])%len(alphabet)]
	}
	return string(out)
}
