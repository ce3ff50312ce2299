package strictjson

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Members are the members of an object in their order. Most objects have few members, so a linear
// search is cheaper than filling a map.
type Members []Member

// Member is a member of an object.
type Member struct {
	Name  string
	Value json.RawMessage // never empty
}

// Get returns the value of a member, or nil.
func (m Members) Get(name string) json.RawMessage {
	for i := range m {
		if m[i].Name == name {
			return m[i].Value
		}
	}
	return nil
}

// Split splits an object in valid JSON into its members, without reading their values. No name may
// differ from a known one only in case, whatever the rule is. For a text that is not valid JSON, the
// result is an error or any part of the text.
func Split(object []byte, rule Names, known ...string) (Members, error) {
	out, seen := make(Members, 0, 4), names{rule: rule}
	err := Each(object, func(key, value []byte) error {
		name, err := nameOf(key, known)
		if err == nil {
			err = seen.addMember(out, name)
		}
		out = append(out, Member{name, value})
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Each calls f with the name and the value of each member of an object in valid JSON, as in the
// text. It stops at the first error.
func Each(object []byte, f func(key, value []byte) error) error {
	w := walker{text: object}
	if w.next() != '{' {
		return ErrKind
	}
	for w.pos++; w.next() != '}'; {
		w.comma()
		key := w.key()
		value := w.value()
		if len(key) < 2 || key[0] != '"' || len(value) == 0 {
			return ErrSyntax
		}
		if err := f(key, value); err != nil {
			return err
		}
	}
	return nil
}

// CheckName returns an error for a name that some decoders confuse with a known one, or treat
// specially.
func CheckName(name string, known ...string) error {
	if name == "__proto__" { // in JavaScript, its members may become members of the object
		return ErrProto
	}
	for _, n := range known {
		if name != n && Same(name, n) {
			return &DuplicateError{name}
		}
	}
	return nil
}

// Unquote decodes a string in valid JSON.
func Unquote(raw []byte) (s string, ok bool) {
	if len(raw) >= 2 && bytes.IndexByte(raw, '\\') < 0 && raw[0] == '"' {
		return string(raw[1 : len(raw)-1]), true
	}
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}

// nameOf decodes a name. A name that is spelled like a known one needs no copy: no two known names of
// an object differ only in case.
func nameOf(key []byte, known []string) (string, error) {
	for _, n := range known {
		if string(key[1:len(key)-1]) == n {
			return n, nil
		}
	}
	name, ok := Unquote(key)
	if !ok {
		return "", ErrSyntax
	}
	return name, CheckName(name, known...)
}

// fewNames is the maximum number of names for a linear search.
const fewNames = 16

// names finds duplicates in one object. many is nil while there are few names.
type names struct {
	rule Names
	many map[string]struct{}
}

// add returns an error if name is in earlier, the names added before.
func (n *names) add(earlier []string, name string) error {
	return n.check(len(earlier), func(i int) string { return earlier[i] }, name)
}

func (n *names) addMember(earlier Members, name string) error {
	return n.check(len(earlier), func(i int) string { return earlier[i].Name }, name)
}

func (n *names) check(count int, earlier func(int) string, name string) error {
	if n.many == nil && count < fewNames && (n.rule == Exact || ascii(name)) {
		for i := range count {
			// a name that is not ASCII is folded once, and moves all to the map
			if e := earlier(i); e == name || n.rule == Folded && strings.EqualFold(e, name) {
				return &DuplicateError{name}
			}
		}
		return nil
	}
	if n.many == nil {
		n.many = make(map[string]struct{}, 2*count)
		for i := range count {
			n.many[n.form(earlier(i))] = struct{}{}
		}
	}
	form := n.form(name)
	if _, twice := n.many[form]; twice {
		return &DuplicateError{name}
	}
	n.many[form] = struct{}{}
	return nil
}

func (n *names) form(name string) string {
	if n.rule == Exact {
		return name
	}
	return fold(name)
}

// Same reports whether names are equal for a decoder that ignores case.
func Same(a, b string) bool {
	if strings.EqualFold(a, b) {
		return true
	}
	// folding keeps the number of characters, and a sender may choose a long name
	return !(ascii(a) && ascii(b)) && utf8.RuneCountInString(a) == utf8.RuneCountInString(b) && fold(a) == fold(b)
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// fold returns the same text for all names that a decoder that ignores case considers equal.
// Converting to upper case first covers U+017F and U+212A, which encoding/json reads as "s" and "k".
// The letters U+0130 and U+0131 fold to "i".
func fold(name string) string { return strings.ToLower(strings.ToUpper(name)) }

// walker walks through valid JSON. On other text it does not panic.
type walker struct {
	text []byte
	pos  int
}

// next skips white space and returns the current character. At the end of the text, which valid JSON
// does not reach within an object, it returns the end of an object.
func (w *walker) next() byte {
	for w.pos < len(w.text) {
		switch c := w.text[w.pos]; c {
		case ' ', '\t', '\r', '\n':
			w.pos++
		default:
			return c
		}
	}
	return '}'
}

// comma skips a comma between members or elements.
func (w *walker) comma() {
	if w.next() == ',' {
		w.pos++
		w.next()
	}
}

// key returns the name of a member as in the text, and moves to its value.
func (w *walker) key() []byte {
	raw := w.value()
	w.next()
	w.pos = min(w.pos+1, len(w.text)) // the colon
	w.next()
	return raw
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
	for w.pos++; w.pos < len(w.text) && w.text[w.pos] != '"'; w.pos++ {
		if w.text[w.pos] == '\\' {
			w.pos++
		}
	}
	w.pos = min(w.pos+1, len(w.text))
}
