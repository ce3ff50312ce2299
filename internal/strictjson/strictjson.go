// Package strictjson reads JSON that another program could read differently, and refuses it:
// repeated names, names that differ only in case, invalid UTF-8, and text after the value. It also
// limits size, nesting and the number of values. The package is the only one that walks JSON by
// tokens; internal/archtest enforces this.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Errors of this package. A repeated name is a *DuplicateError.
var (
	ErrSyntax = errors.New("must be one JSON value in UTF-8")
	ErrKind   = errors.New("must be a JSON object")
	ErrLarge  = errors.New("JSON is too long, nested too deeply, or has too many values")
	ErrText   = errors.New("a JSON string has half of a surrogate pair, which decoders replace")
	ErrProto  = errors.New(`a JSON object must not have the name "__proto__"`)
)

// DuplicateError reports a name that occurs twice in one object.
type DuplicateError struct{ Name string }

// Error implements error.
func (e *DuplicateError) Error() string { return fmt.Sprintf("the JSON name %q occurs twice", e.Name) }

// Names is the rule for names in an object.
type Names byte

const (
	// Folded is the rule for objects with specified names. Names that differ only in case are
	// duplicates, as for decoders that ignore case. Strings must not contain lone surrogates.
	Folded Names = iota
	// Exact is the rule for objects whose sender chooses the names, such as arguments of a tool. Only
	// equal names are duplicates.
	Exact
)

// defaultDepth is the maximum nesting if Limits.Depth is 0.
const defaultDepth = 100

// Limits are the bounds and the rule for a text.
type Limits struct {
	Bytes  int // 0: the caller has limited the text
	Depth  int // of nested objects and arrays; 0: 100
	Values int // members and elements at all depths; 0: limited by the size
	Names  Names
}

// Check reports whether text is exactly one JSON value within the limits, and all objects in it obey
// the rule for names.
func Check(text []byte, l Limits) error {
	if l.Bytes > 0 && len(text) > l.Bytes {
		return ErrLarge
	}
	if l.Depth == 0 {
		l.Depth = defaultDepth
	}
	if err := CheckDepth(text, l.Depth); err != nil {
		return err
	}
	if !utf8.Valid(text) || !json.Valid(text) {
		return ErrSyntax
	}
	if l.Names == Folded && !paired(text) {
		return ErrText
	}
	c := checker{walker: walker{text: text}, limits: l}
	return c.value()
}

// Object checks a text that must be an object, and returns its members.
func Object(text []byte, l Limits) (Members, error) {
	if err := Check(text, l); err != nil {
		return nil, err
	}
	return Split(text, l.Names)
}

// Value checks and decodes a text. Numbers are json.Number.
func Value(text []byte, l Limits) (v any, err error) {
	if err := Check(text, l); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return v, d.Decode(&v)
}

// Decode checks a text and decodes it into v. Objects that are decoded into a struct must not have
// other members.
func Decode(text []byte, v any, l Limits) error {
	if err := Check(text, l); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// CheckDepth limits nesting without decoding, so that a hostile text costs one pass.
func CheckDepth(text []byte, most int) error {
	depth, inString, escaped := 0, false, false
	for _, c := range text {
		switch {
		case escaped:
			escaped = false
		case inString && c == '\\':
			escaped = true
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > most {
				return ErrLarge
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

// checker walks through all objects of valid JSON.
type checker struct {
	walker
	limits Limits
	values int
	names  []string // of the open objects, outermost first
}

func (c *checker) value() error {
	switch c.next() {
	case '{':
		return c.object()
	case '[':
		return c.array()
	}
	c.walker.value()
	return nil
}

func (c *checker) object() error {
	first := len(c.names)
	seen := names{rule: c.limits.Names}
	for c.pos++; c.next() != '}'; {
		c.comma()
		name, err := nameOf(c.key(), nil)
		if err == nil {
			err = seen.add(c.names[first:], name)
		}
		if err != nil {
			return err
		}
		c.names = append(c.names, name)
		if err := c.item(); err != nil {
			return err
		}
	}
	c.pos++
	c.names = c.names[:first]
	return nil
}

func (c *checker) array() error {
	for c.pos++; c.next() != ']'; {
		c.comma()
		if err := c.item(); err != nil {
			return err
		}
	}
	c.pos++
	return nil
}

func (c *checker) item() error {
	if c.values++; c.limits.Values > 0 && c.values > c.limits.Values {
		return ErrLarge
	}
	return c.value()
}

// paired reports whether every escaped surrogate in valid JSON belongs to a pair: encoding/json
// decodes all others to the same character. JSON contains backslashes only in strings.
func paired(text []byte) bool {
	high := false // the previous escape was a high surrogate
	for i := 0; i < len(text); {
		if text[i] != '\\' {
			if high {
				return false
			}
			i++
			continue
		}
		if text[i+1] != 'u' {
			if high {
				return false
			}
			i += 2
			continue
		}
		unit, err := strconv.ParseUint(string(text[i+2:i+6]), 16, 32)
		low := unit >= 0xDC00 && unit < 0xE000
		if err != nil || low != high {
			return false
		}
		high = unit >= 0xD800 && unit < 0xDC00
		i += 6
	}
	return !high
}
