package lists

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// quote handles the start of a string.
func (f *filter) quote(i int) {
	f.quoted, f.text = true, f.text[:0]
	f.taken = f.at.isObject() && f.counts()
	if f.taken && !f.key && f.word == isScope {
		f.flush(i)
		f.dst = toNone
	}
}

// counts reports whether the current string has a meaning.
func (f *filter) counts() bool {
	return f.key || f.word == isName || f.word == isScope || f.word == isTaskID
}

// inString reads a string from i on. It returns the index of the closing quote, or the length of
// the buffer if the string continues.
func (f *filter) inString(i int) int {
	b := f.buf
	from := i
	for i < len(b) {
		if f.escaped {
			f.escaped = false
			i++
			continue
		}
		n := bytes.IndexByte(b[i:], '"')
		closes := n >= 0
		if !closes {
			n = len(b) - i
		}
		back := 0
		for back < n && b[i+n-1-back] == '\\' {
			back++
		}
		if i += n; back%2 == 1 {
			f.escaped = true
			continue
		}
		if closes {
			f.closed(b[from:i], i)
			return i
		}
	}
	f.collect(b[from:])
	return len(b)
}

func (f *filter) collect(b []byte) {
	if f.taken && len(f.text) <= maxText {
		f.text = append(f.text, b...)
	}
}

// closed handles the end of a string: rest is its last part, and i the index of its closing quote.
func (f *filter) closed(rest []byte, i int) {
	f.quoted = false
	if !f.taken {
		return
	}
	f.collect(rest)
	if !f.key && f.word == isScope {
		f.mark, f.dst = i+1, toOut
		f.put([]byte(`"private"`))
		return
	}
	f.means(f.text)
}

// means handles a key or a name in its raw form.
func (f *filter) means(text []byte) {
	text, ok := plain(text)
	switch {
	case f.key:
		f.meaning(text)
		f.doubt = f.doubt || f.at == entry && !ok
	case f.word == isName:
		f.name, f.doubt = string(text), f.doubt || !ok
	case f.word == isTaskID:
		f.refused = f.refused || !f.dropping && (!ok || !f.shows(Begun, string(text), nil))
	}
}

// plain decodes a string. It reports false for NUL, lone surrogates and invalid UTF-8, because
// decoders disagree about them.
func plain(text []byte) ([]byte, bool) {
	switch {
	case len(text) > maxText:
		return nil, false
	case isWord(text):
		return text, true
	case bytes.IndexByte(text, '\\') < 0:
		return text, utf8.Valid(text)
	}
	var s string
	err := json.Unmarshal(slices.Concat(quotes, text, quotes), &s)
	return []byte(s), err == nil && utf8.Valid(text) && !strings.ContainsAny(s, "\x00\ufffd")
}

// isWord reports whether a string is ASCII without escapes, as nearly all keys and names are.
func isWord(text []byte) bool {
	for _, c := range text {
		if c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

var quotes = []byte(`"`)

// meaning sets the meaning of a key at the current place.
func (f *filter) meaning(key []byte) {
	f.word = other
	if f.at != entry && string(key) == prototype { // its members may become members of the object
		f.foul = true
	}
	switch f.at {
	case message:
		if bytes.EqualFold(key, resultKey) {
			f.word = isResult
		}
	case result:
		if bytes.EqualFold(key, scopeKey) {
			f.word = isScope
		}
		for k := Tools; k <= last; k++ {
			if bytes.EqualFold(key, members[k]) {
				f.word, f.kind = isList, k
			}
		}
		switch { // a new task: in 2025-11-25 a member of the result, since 2026-07-28 the result itself
		case bytes.EqualFold(key, taskIDKey):
			f.word = isTaskID
		case bytes.EqualFold(key, taskKey):
			f.word = isTask
		}
	case begun:
		if bytes.EqualFold(key, taskIDKey) {
			f.word = isTaskID
		}
	case entry:
		if name := kinds[f.kind].name; bytes.EqualFold(key, names[f.kind]) {
			f.word, f.doubt, f.named = isName, f.doubt || f.named || string(key) != name, true
		}
		f.doubt = f.doubt || string(key) == prototype
	}
}

// prototype is the key whose members JavaScript may read as members of the enclosing object.
const prototype = "__proto__"

// These are the keys with a meaning, as bytes.
var (
	resultKey, scopeKey = []byte("result"), []byte("cacheScope")
	taskKey, taskIDKey  = []byte("task"), []byte("taskId")
	members, names      = keys()
)

func keys() (members, names [last + 1][]byte) {
	for k := Tools; k <= last; k++ {
		members[k], names[k] = []byte(kinds[k].member), []byte(kinds[k].name)
	}
	return members, names
}

// class is the meaning of a character outside of strings, at any depth.
type class uint8

const (
	passes class = iota
	opens
	shuts
	quoting
	fouls // for some decoders it begins a comment, another kind of string or a bare name, or ends a line
)

var classes = classify()

// classify returns the classes. Numbers and literals pass, including NaN and Infinity, which some
// servers write.
func classify() (out [256]class) {
	for i := range out {
		out[i] = fouls
	}
	for _, c := range []byte(" \t\r\n,:+-.0123456789Etruefalsn" + "NaInfity") {
		out[c] = passes
	}
	out['"'], out['{'], out['['], out['}'], out[']'] = quoting, opens, opens, shuts, shuts
	return out
}
