package mcpresource

import (
	"net/url"
	"slices"
	"strings"
)

// lookup returns the scopes that a table of Rules has for a name: those of the name itself, or
// of the pattern that says most.
func lookup(table map[string][]string, name string) ([]string, bool) {
	if s, ok := table[name]; ok {
		return s, true
	}
	best := -1
	var found []string
	for key, scopes := range table {
		if says := len(key) - strings.Count(key, "*"); matches(key, name) {
			best, found = better(best, found, says, scopes)
		}
	}
	return found, best >= 0
}

// better keeps the scopes of the key that says more. Those of equals are put in order,
// because that of a map changes and a challenge must not.
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

// matches reports whether a name fits a pattern, in which "*" is any text.
func matches(pattern, name string) bool {
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

// fold returns one text for all methods that a lenient server could take for one. The way over capitals covers U+017F
// and U+212A.
func fold(method string) string { return strings.ToLower(strings.ToUpper(strings.TrimSpace(method))) }

func folded(methods []string) []string {
	out := make([]string, len(methods))
	for i, m := range methods {
		out[i] = fold(m)
	}
	return out
}

// twin reports whether a table has a method only in another spelling.
func twin(table map[string][]string, method string) bool {
	for key := range table {
		if matches(fold(key), fold(method)) {
			return true
		}
	}
	return false
}
