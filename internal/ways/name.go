package ways

import (
	"unicode/utf8"

	"github.com/mcp-authd/mcp-authd/internal/label"
)

// maxName is the maximum length of a name in characters.
const maxName = 64

// named returns the stored form of a name.
func named(name string) (string, error) {
	name = label.Visible(name)
	if n := utf8.RuneCountInString(name); n == 0 || n > maxName {
		return "", ErrName
	}
	return name, nil
}
