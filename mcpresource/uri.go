package mcpresource

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"
)

// ErrResourceURI means that a resource could be meant that other rules are for: the
// URI has dot segments, or is not in its canonical form (RFC 3986 §6.2.2).
var ErrResourceURI = errors.New("mcpresource: resource URI is not canonical")

// maxDecodings is how often a careless server might decode a URI, and more.
const maxDecodings = 4

// checkURI refuses what a server may resolve to another resource than the one that a
// table names: file:///public/../private/x is no file of file:///public/*. A template
// (RFC 6570) is judged as it is written, and "" left to the server.
func checkURI(uri string) error {
	if strings.ContainsFunc(uri, func(c rune) bool { return c < ' ' || c == 0x7f || c == '\\' }) || strings.HasSuffix(uri, " ") {
		return notCanonical("a character that parsers drop or replace")
	}
	rest := uri
	if i := strings.IndexAny(uri, ":/?#"); i >= 0 && uri[i] == ':' {
		if rest = uri[i+1:]; !isScheme(uri[:i]) {
			return notCanonical("the scheme")
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
			if strings.Contains(segment, ".") && strings.Trim(segment, ". ") == "" { // Windows drops the spaces, and further dots
				return notCanonical("a dot segment")
			}
		}
		plain, err := url.PathUnescape(rest)
		switch {
		case err != nil || plain == rest:
			return nil
		case !utf8.ValidString(plain): // overlong forms of "." and "/" among them
			return notCanonical("what is encoded is no text")
		}
		rest = plain
	}
	return notCanonical("encoded again and again")
}

// isSeparator reports what some server ends a path segment at; ";" is one for Java.
func isSeparator(c rune) bool { return strings.ContainsRune(`/\?#;`, c) }

func isScheme(s string) bool {
	return s != "" && 'a' <= s[0] && s[0] <= 'z' && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789+-.") == ""
}

// checkAuthority judges the host. That of a scheme which every parser knows is in
// lower case and without its default port; that of another may name anything in any
// case, and the tables ignore it.
func checkAuthority(scheme, rest string) error {
	port, known := defaultPort(scheme)
	after, ok := strings.CutPrefix(rest, "//")
	if !ok && known {
		return notCanonical("no host")
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
		return notCanonical("user information or an encoded host")
	case known && (host != strings.ToLower(host) || strings.HasSuffix(host, ":"+port) || strings.HasSuffix(host, ":") || strings.HasSuffix(host, ".")):
		return notCanonical("the host")
	case scheme == "file" && (host == "localhost" || strings.Contains(path, "//") || strings.Contains(strings.ToLower(path), "%2f")):
		return notCanonical("the file has another name")
	}
	return nil
}

// defaultPort reports also whether every parser knows the scheme.
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

// checkEscapes refuses escapes that are none, or of characters that need none
// (RFC 3986 §2.3), and NUL.
func checkEscapes(s string) error {
	for i := strings.IndexByte(s, '%'); i >= 0; {
		c, err := url.PathUnescape(s[i:min(i+3, len(s))])
		if err != nil || c[0] == 0 || c == "." || c == "-" || c == "_" || isAlphanumeric(c[0]) {
			return notCanonical("an escape")
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

func notCanonical(why string) error { return fmt.Errorf("%w: %s", ErrResourceURI, why) }

// check refuses an operation on a resource that no table should be asked about.
func (op Operation) check() error {
	if !isResource(op.Method) {
		return nil
	}
	return checkURI(op.Name)
}

func isResource(method string) bool {
	return method == "resources/read" || method == "resources/subscribe" || method == "resources/unsubscribe"
}

// lookupURI is lookup for resources, of which as makes spellings alike: the case of scheme
// and host does not matter, in the keys neither. Of keys that differ in it alone the scopes
// of all are needed.
func lookupURI(table map[string][]string, uri string, as func(string) string) (found []string, ok bool) {
	uri = as(uri)
	best := -1
	for key, scopes := range table {
		key = as(key)
		prefix, glob := strings.CutSuffix(key, "*")
		length := len(prefix)
		switch {
		case key == uri:
			length = len(uri) + 1 // the exact name goes first
		case !glob || !strings.HasPrefix(uri, prefix):
			continue
		}
		best, found = better(best, found, length, scopes)
	}
	return found, best >= 0
}

func foldHost(uri string) string {
	host := strings.Index(uri, "://") + len("://")
	if host < len("://") {
		return uri
	}
	end := strings.IndexAny(uri[host:], "/?#")
	if end < 0 {
		return strings.ToLower(uri)
	}
	return strings.ToLower(uri[:host+end]) + uri[host+end:]
}

// asOpened is a canonical URI, or a key, as a server opens it: a key "x://h/My Docs/*" is
// meant for "My%20Docs" as well, and the other way round. What a URI needs in one form and
// in the other is needed, because "a%2Fb" is one segment to some servers and two to others.
func asOpened(uri string) string {
	if plain, err := url.PathUnescape(uri); err == nil {
		uri = plain
	}
	return foldHost(uri)
}

// deniesURI compares in both forms. It regards no case where a pattern does not say which
// part is the host: what denies should deny too much rather than too little.
func deniesURI(pattern, uri string) bool {
	if !strings.Contains(pattern, "://") {
		pattern, uri = strings.ToLower(pattern), strings.ToLower(uri)
	}
	return matches(foldHost(pattern), foldHost(uri)) || matches(asOpened(pattern), asOpened(uri))
}
