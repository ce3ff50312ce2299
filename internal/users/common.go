package users

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"io"
	"strings"
	"sync"
)

// compressed is common.txt, which names its source: the passwords that are guessed first, one per
// line. Write it with gzip -9 -n -k common.txt.
//
//go:embed common.txt.gz
var compressed []byte

// commonPasswords returns common.txt.
var commonPasswords = sync.OnceValue(func() string {
	r, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		panic(err) // TestCompressedPasswords reads it
	}
	all, err := io.ReadAll(r)
	if err != nil {
		panic(err)
	}
	return string(all)
})

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
	return p != "" && !strings.Contains(p, "\n") && strings.Contains(commonPasswords(), "\n"+p+"\n")
}
