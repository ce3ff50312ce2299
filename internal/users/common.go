package users

import (
	_ "embed"
	"strings"
)

// commonPasswords lists the passwords that are guessed first, one per line. The file names its
// source.
//
//go:embed common.txt
var commonPasswords string

// isCommon reports whether a password is too easy to guess (NIST SP 800-63B §5.1.1.2): a common
// password in any case, or the name of the account. It also finds common passwords that are doubled
// or followed by digits, which are usual ways to lengthen them. The list is searched linearly:
// passwords are set rarely, and an index would occupy memory.
func isCommon(name, password string) bool {
	p := strings.ToLower(password)
	half := p[:len(p)/2]
	return p == strings.ToLower(name) || isListed(p) || isListed(strings.TrimRight(p, "0123456789.!?_-#*")) ||
		p == half+half && isListed(half)
}

func isListed(p string) bool {
	return p != "" && !strings.Contains(p, "\n") && strings.Contains(commonPasswords, "\n"+p+"\n")
}
