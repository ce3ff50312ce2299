package attempt

import (
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/reference"
)

// NewReference returns what names a request to people: eight characters that can be read aloud (OB-02).
func NewReference() string { return reference.New() }

// ParseReference is the reference that a person has typed, or the id of an attempt: without regard to
// case, hyphens and spaces. It reports whether it can be one.
func ParseReference(typed string) (string, bool) {
	typed = strings.ToUpper(strings.TrimSpace(typed))
	return reference.Parse(strings.TrimPrefix(typed, strings.ToUpper(idPrefix)))
}
