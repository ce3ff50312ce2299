package message

import (
	"errors"
	"net/url"
	"strings"
	"unicode/utf8"
)

// maxDecodings exceeds the number of times that a careless server might decode a URI.
const maxDecodings = 4

// checkURI returns an error for a URI that a server may resolve to another resource than a table
// does: file:///public/../private/x is not in file:///public/*. So it requires the canonical form
// (RFC 3986 §6.2.2). Templates (RFC 6570) are checked literally, and "" is left to the server.
func checkURI(uri string) error {
	if strings.ContainsFunc(uri, func(c rune) bool { return c < ' ' || c == 0x7f || c == '\\' }) ||
		strings.HasSuffix(uri, " ") {
		return errors.New("a character that parsers drop or replace")
	}
	rest := uri
	if i := strings.IndexAny(uri, ":/?#"); i >= 0 && uri[i] == ':' {
		if rest = uri[i+1:]; !isScheme(uri[:i]) {
			return errors.New("the scheme")
		}
		if err := checkAuthority(uri[:i], rest); err != nil {
			return err
		}
	}
	if err := checkEscapes(rest); err != nil {
		return err
	}
	for range maxDecodings {
		for segment := range strings.FieldsFuncSeq(rest, isSeparator) {
			// Windows ignores the spaces and additional dots
			if strings.Contains(segment, ".") && strings.Trim(segment, ". ") == "" {
				return errors.New("a dot segment")
			}
		}
		plain, err := url.PathUnescape(rest)
		switch {
		case err != nil || plain == rest:
			return nil
		case !utf8.ValidString(plain): // includes overlong forms of "." and "/"
			return errors.New("an encoded character is not text")
		}
		rest = plain
	}
	return errors.New("encoded again and again")
}

// isSeparator reports whether some server ends a path segment at c; Java does at ";".
func isSeparator(c rune) bool { return strings.ContainsRune(`/\?#;`, c) }

func isScheme(s string) bool {
	return s != "" && 'a' <= s[0] && s[0] <= 'z' && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789+-.") == ""
}

// checkAuthority checks the host. With a scheme that every parser knows, it must be in lower case
// and without the default port. With other schemes it may be in any case, and the tables ignore it.
func checkAuthority(scheme, rest string) error {
	port, known := defaultPort(scheme)
	after, ok := strings.CutPrefix(rest, "//")
	if !ok && known {
		return errors.New("no host")
	}
	if !ok {
		return nil
	}
	host, path := after, ""
	if i := strings.IndexAny(after, "/?#"); i >= 0 {
		host, path = after[:i], after[i:]
	}
	switch {
	case strings.ContainsAny(host, "@%") || strings.ContainsFunc(host, func(c rune) bool { return c >= utf8.RuneSelf }):
		return errors.New("user information or an encoded host")
	case known &&
		(host != strings.ToLower(host) || strings.HasSuffix(host, ":"+port) || strings.HasSuffix(host, ":") ||
			strings.HasSuffix(host, ".")):
		return errors.New("the host")
	case scheme == "file" &&
		(host == "localhost" || strings.Contains(path, "//") || strings.Contains(strings.ToLower(path), "%2f")):
		return errors.New("the file has another name")
	}
	return nil
}

// defaultPort returns the default port of a scheme. known reports whether every parser knows the
// scheme.
func defaultPort(scheme string) (port string, known bool) {
	switch scheme {
	case "http", "ws":
		return "80", true
	case "https", "wss":
		return "443", true
	case "ftp":
		return "21", true
	}
	return "", scheme == "file"
}

// checkEscapes returns an error for malformed escapes, for escapes of characters that need none
// (RFC 3986 §2.3), and for NUL.
func checkEscapes(s string) error {
	for i := strings.IndexByte(s, '%'); i >= 0; {
		c, err := url.PathUnescape(s[i:min(i+3, len(s))])
		if err != nil || c[0] == 0 || c == "." || c == "-" || c == "_" || isAlphanumeric(c[0]) {
			return errors.New("an escape")
		}
		next := strings.IndexByte(s[i+3:], '%')
		if next < 0 {
			return nil
		}
		i += 3 + next
	}
	return nil
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// CheckURI returns an error for a resource URI that must not be looked up in a table.
func (m Message) CheckURI() error {
	if !IsResource(m.Method) {
		return nil
	}
	return checkURI(m.Name)
}

// IsResource reports whether the name in a call of method is a resource URI.
func IsResource(method string) bool {
	return method == "resources/read" || method == "resources/subscribe" || method == "resources/unsubscribe"
}
