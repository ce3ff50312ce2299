package ways

import (
	"unicode/utf8"

	"github.com/mcp-authd/mcp-authd/internal/label"
)

// maxName is how many characters a name has at most.
const maxName = 64

// named is the name of a way as it is stored.
func named(name string) (string, error) {
	name = label.Visible(name)
	if n := utf8.RuneCountInString(name); n == 0 || n > maxName {
		return "", ErrName
	}
	return name, nil
}
