// Package reference creates names of requests for users: eight letters and digits that can be read
// aloud. For a resource server in another process, four more characters before them identify the
// server. It imports only the standard library, because the package for tool authors links it.
package reference

import (
	"crypto/rand"
	"crypto/sha256"
	"strings"
)

// alphabet has no characters that are easily confused, and no vowels, which could form words.
const alphabet = "23456789BCDFGHJKMNPQRTVWXZ"

const (
	length     = 8
	markLength = 4
)

// New returns a reference for a request to the authorization server, or to an MCP server in its
// process (OB-02).
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

// NewOf returns a reference for a request to a resource server in another process, which is a
// client of the authorization server. It starts with a mark of that client, so it cannot equal a
// reference of another one.
func NewOf(client string) string { return mark(client) + New() }

// IsOf reports whether a reference was created by NewOf for client.
func IsOf(reference, client string) bool {
	rest, marked := strings.CutPrefix(reference, mark(client))
	return marked && len(rest) == length && strings.Trim(rest, alphabet) == ""
}

// Parse returns the reference that a user has typed, ignoring case, hyphens and spaces. It reports
// whether it is valid.
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
