package users

import (
	_ "embed"
	"strings"
)

// commonPasswords are those that are guessed first, one a line; the file says where they
// come from.
//
//go:embed common.txt
var commonPasswords string

// isCommon reports whether a password is among the most common ones, in whatever case, is one
// of them with digits behind it or twice over, which is what people make of them when they
// are too short, or is the name of its account (NIST SP 800-63B §5.1.1.2). The list is read
// through: a password is set seldom, and an index would stay in memory.
func isCommon(name, password string) bool {
	p := strings.ToLower(password)
	half := p[:len(p)/2]
	return p == strings.ToLower(name) || isListed(p) || isListed(strings.TrimRight(p, "0123456789.!?_-#*")) ||
		p == half+half && isListed(half)
}

func isListed(p string) bool {
	return p != "" && !strings.Contains(p, "\n") && strings.Contains(commonPasswords, "\n"+p+"\n")
}
