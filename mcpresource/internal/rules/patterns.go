package rules

import (
	"net/url"
	"slices"
	"strings"
)

// lookup returns the scopes for a name in a table of Rules: those of the exact name, else of the
// most specific pattern.
func lookup(table map[string][]string, name string) ([]string, bool) {
	if s, ok := table[name]; ok {
		return s, true
	}
	best := -1
	var found []string
	for key, scopes := range table {
		if says := len(key) - strings.Count(key, "*"); Matches(key, name) {
			best, found = better(best, found, says, scopes)
		}
	}
	return found, best >= 0
}

// better keeps the scopes of the more specific key. For equally specific keys it keeps all, sorted:
// maps are unordered, and a challenge must not vary.
func better(best int, found []string, says int, scopes []string) (int, []string) {
	switch {
	case says > best:
		return says, scopes
	case says == best:
		found = slices.Concat(found, scopes)
		slices.Sort(found)
	}
	return best, found
}

// Matches reports whether a name matches a pattern, where "*" is any text.
func Matches(pattern, name string) bool {
	before, after, glob := strings.Cut(pattern, "*")
	if !glob || !strings.HasPrefix(name, before) {
		return pattern == name
	}
	name = name[len(before):]
	for {
		part, rest, more := strings.Cut(after, "*")
		if !more {
			return strings.HasSuffix(name, part)
		}
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name, after = name[i+len(part):], rest
	}
}

// lookupURI is lookup for resource URIs. as normalizes keys and URI, so that the case of scheme and
// host is ignored. Keys that are equal after that require the scopes of all of them.
func lookupURI(table map[string][]string, uri string, as func(string) string) (found []string, ok bool) {
	uri = as(uri)
	best := -1
	for key, scopes := range table {
		key = as(key)
		prefix, glob := strings.CutSuffix(key, "*")
		length := len(prefix)
		switch {
		case key == uri:
			length = len(uri) + 1 // the exact name wins
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

// asOpened returns a canonical URI, or a key, as a server opens it: "x://h/My Docs/*" and
// "x://h/My%20Docs/*" are the same. A URI requires the scopes of both forms, because "a%2Fb" is one
// segment to some servers and two to others.
func asOpened(uri string) string {
	if plain, err := url.PathUnescape(uri); err == nil {
		uri = plain
	}
	return foldHost(uri)
}

// deniesURI compares in both forms. If a pattern does not show which part is the host, it ignores
// case, because denying too much is safer than too little.
func deniesURI(pattern, uri string) bool {
	if !strings.Contains(pattern, "://") {
		pattern, uri = strings.ToLower(pattern), strings.ToLower(uri)
	}
	return Matches(foldHost(pattern), foldHost(uri)) || Matches(asOpened(pattern), asOpened(uri))
}

// fold returns the same text for all spellings of a method that a lenient server could treat as
// equal. Upper case first covers U+017F and U+212A.
func fold(method string) string { return strings.ToLower(strings.ToUpper(strings.TrimSpace(method))) }

func folded(methods []string) []string {
	out := make([]string, len(methods))
	for i, m := range methods {
		out[i] = fold(m)
	}
	return out
}

// twin reports whether a table contains a method in another spelling.
func twin(table map[string][]string, method string) bool {
	for key := range table {
		if Matches(fold(key), fold(method)) {
			return true
		}
	}
	return false
}
