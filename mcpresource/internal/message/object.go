package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"
)

// fields are the members of an object. Objects in MCP have few members, so a linear search is
// cheaper than filling a map.
type fields []field

type field struct {
	name  string
	value json.RawMessage // never empty
}

// get returns the value of a member, or nil.
func (f fields) get(name string) json.RawMessage {
	for i := range f {
		if f[i].name == name {
			return f[i].value
		}
	}
	return nil
}

// fewFields is the maximum number of members for a linear search.
const fewFields = 16

// unique is the set of names seen in an object, nil while there are few.
type unique map[string]struct{}

// has reports whether name is in f, and adds it to the set.
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

// object splits exactly one JSON object into its members. It walks the text a second time after
// validating it, which costs a third of decoding it by tokens.
func object(b []byte, known ...string) (fields, error) {
	if !json.Valid(b) || !utf8.Valid(b) {
		return nil, errors.New("not JSON, or something follows it")
	}
	return members(b, known...)
}

// members is object for part of a valid text. No key may be repeated, or differ from a known one
// only in case. EqualFold covers the two characters outside ASCII that fold into it (U+017F and
// U+212A).
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

// keyOf decodes a key. A key spelled like a known one needs no copy: no two names that this package
// knows differ only in case.
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

// checkKey returns an error for a key that some decoders confuse with a known one, or treat
// specially.
func checkKey(key string, known []string) error {
	if key == "__proto__" { // in JavaScript, its members may become members of the object
		return errors.New("a key that stands for others")
	}
	for _, n := range known {
		if key != n && strings.EqualFold(key, n) {
			return errors.New("a key differs from a known one in case alone")
		}
	}
	return nil
}

func unquote(raw []byte) (s string, ok bool) {
	if len(raw) >= 2 && bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), true
	}
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}

// walker walks through valid JSON.
type walker struct {
	text []byte
	pos  int
}

// next skips white space and returns the current character.
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

// value returns the value at the current position, and moves past it.
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
				return w.text[start:w.pos] // the end of the enclosing value
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

// quoted moves past the string at the current position.
func (w *walker) quoted() {
	for w.pos++; w.text[w.pos] != '"'; w.pos++ {
		if w.text[w.pos] == '\\' {
			w.pos++
		}
	}
	w.pos++
}

// plainString decodes a JSON string. ok is false if it contains NUL or a lone surrogate, which
// decoders treat differently.
func plainString(raw json.RawMessage) (string, bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	s, ok := unquote(raw)
	return s, ok && !strings.ContainsRune(s, 0) && !strings.ContainsRune(s, utf8.RuneError)
}

// checkDepth limits nesting without decoding, so that a hostile body costs one pass.
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
