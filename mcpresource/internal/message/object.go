package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"
)

// fields are the members of an object. MCP has few in each, among which to look one up costs less than a
// map costs to fill.
type fields []field

type field struct {
	name  string
	value json.RawMessage // never empty
}

// get returns the value of a member, nil when there is none of that name.
func (f fields) get(name string) json.RawMessage {
	for i := range f {
		if f[i].name == name {
			return f[i].value
		}
	}
	return nil
}

// fewFields are as many as a new one is compared with, one by one.
const fewFields = 16

// unique is the names of an object so far, nil for few of them.
type unique map[string]struct{}

// has reports whether name is one of those of f, all of which it has seen, and remembers it for the next.
func (u *unique) has(f fields, name string) bool {
	if len(f) < fewFields {
		return f.get(name) != nil
	}
	if *u == nil {
		*u = unique{}
		for i := range f {
			(*u)[f[i].name] = struct{}{}
		}
	}
	_, ok := (*u)[name]
	(*u)[name] = struct{}{}
	return ok
}

// object splits exactly one JSON object into its members. It goes through the text once
// more after it has been found valid, which costs a third of decoding it by tokens.
func object(b []byte, known ...string) (fields, error) {
	if !json.Valid(b) || !utf8.Valid(b) {
		return nil, errors.New("not JSON, or something follows it")
	}
	return members(b, known...)
}

// members is object for what is part of a valid text. No key may occur twice, nor
// differ from a known one in case alone; EqualFold covers the two characters outside
// ASCII that fold into it (U+017F and U+212A).
func members(b []byte, known ...string) (fields, error) {
	w := walker{b, 0}
	if w.next() != '{' {
		return nil, errors.New("not a JSON object")
	}
	out, seen := make(fields, 0, 4), unique(nil)
	for w.pos++; w.next() != '}'; {
		if b[w.pos] == ',' {
			w.pos++
			w.next()
		}
		key, err := keyOf(w.value(), known)
		if err != nil {
			return nil, err
		}
		if seen.has(out, key) {
			return nil, errors.New("a key occurs twice")
		}
		w.next()
		w.pos++ // the colon
		w.next()
		out = append(out, field{key, w.value()})
	}
	return out, nil
}

// keyOf decodes a key. One that is written as a known one is that, and needs no copy: no two of those that this
// package knows differ in case alone.
func keyOf(raw []byte, known []string) (string, error) {
	for _, n := range known {
		if string(raw[1:len(raw)-1]) == n {
			return n, nil
		}
	}
	key, ok := unquote(raw)
	if !ok {
		return "", errors.New("a key is no text")
	}
	return key, checkKey(key, known)
}

// checkKey refuses a key that some decoders take for a known one, or for what it is not.
func checkKey(key string, known []string) error {
	if key == "__proto__" { // to JavaScript, its members may be those of the object
		return errors.New("a key that stands for others")
	}
	for _, n := range known {
		if key != n && strings.EqualFold(key, n) {
			return errors.New("a key differs from a known one in case alone")
		}
	}
	return nil
}

// unquote decodes a JSON string.
func unquote(raw []byte) (s string, ok bool) {
	if len(raw) >= 2 && bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), true
	}
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}

// walker goes through valid JSON.
type walker struct {
	text []byte
	pos  int
}

// next skips white space and returns the character that stands there.
func (w *walker) next() byte {
	for {
		switch c := w.text[w.pos]; c {
		case ' ', '\t', '\r', '\n':
			w.pos++
		default:
			return c
		}
	}
}

// value returns the value that stands here, and goes behind it.
func (w *walker) value() []byte {
	start, depth := w.pos, 0
	for w.pos < len(w.text) {
		switch w.text[w.pos] {
		case '"':
			w.quoted()
			if depth == 0 {
				return w.text[start:w.pos]
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return w.text[start:w.pos] // of what the value is in
			}
			if depth--; depth == 0 {
				w.pos++
				return w.text[start:w.pos]
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return w.text[start:w.pos]
			}
		}
		w.pos++
	}
	return w.text[start:w.pos]
}

// quoted goes behind the string that begins here.
func (w *walker) quoted() {
	for w.pos++; w.text[w.pos] != '"'; w.pos++ {
		if w.text[w.pos] == '\\' {
			w.pos++
		}
	}
	w.pos++
}

// plainString decodes a JSON string. A NUL or a lone surrogate, which decoders treat
// differently, makes it no plain string.
func plainString(raw json.RawMessage) (string, bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	s, ok := unquote(raw)
	return s, ok && !strings.ContainsRune(s, 0) && !strings.ContainsRune(s, utf8.RuneError)
}

// checkDepth bounds nesting without decoding, so that a hostile body costs one pass.
func checkDepth(b []byte) error {
	depth, inString, escaped := 0, false, false
	for _, c := range b {
		switch {
		case escaped:
			escaped = false
		case inString && c == '\\':
			escaped = true
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return errors.New("nested too deeply")
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}
