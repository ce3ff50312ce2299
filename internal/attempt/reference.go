package attempt

import (
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/reference"
)

// NewReference returns a reference for a request: eight characters that can be read aloud (OB-02).
func NewReference() string { return reference.New() }

// ParseReference parses a reference that a user typed, or the ID of an attempt. It ignores case,
// hyphens and spaces, and reports whether the result is a possible reference.
func ParseReference(typed string) (string, bool) {
	typed = strings.ToUpper(strings.TrimSpace(typed))
	return reference.Parse(strings.TrimPrefix(typed, strings.ToUpper(idPrefix)))
}
