package clearance

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Limits of arguments that can be shown. Larger arguments are refused and never shortened: a user
// must not approve values that they have not seen.
const (
	MaxArguments = 8 << 10 // bytes of JSON
	MaxValues    = 200     // members and elements, including nested ones
	MaxDepth     = 8       // of nesting
	MaxLines     = 200     // line feeds in all strings and names
)

// Errors of ParseArguments.
var (
	ErrTooLarge = errors.New("clearance: arguments that are too long, too many or too deep to be shown")
	ErrNotJSON  = errors.New("clearance: arguments that are no JSON object, or not of one meaning")
)

// Kind is the kind of a JSON value.
type Kind byte

// Kinds of values. A literal is an unparsed number, true, false or null.
const (
	Literal Kind = 'l'
	String  Kind = 's'
	Array   Kind = 'a'
	Object  Kind = 'o'
)

// Value is a JSON value.
type Value struct {
	Kind  Kind
	Text  string   // of a literal or a string, decoded
	Names []string // of the members of an object
	Items []Value  // members or elements, in their original order
}

// Arguments are the arguments of a tool call. Given is false if they are absent, which differs from
// an empty object.
type Arguments struct {
	Given bool
	Value
}

// ParseArguments parses arguments strictly: it refuses everything that two programs could read
// differently. This includes repeated member names, names that differ only in case, JavaScript's
// __proto__, invalid UTF-8, and lone surrogates.
func ParseArguments(raw []byte) (Arguments, error) {
	if len(raw) > MaxArguments {
		return Arguments{}, ErrTooLarge
	}
	if len(raw) == 0 {
		return Arguments{}, nil
	}
	if !utf8.Valid(raw) || !json.Valid(raw) || !paired(raw) {
		return Arguments{}, ErrNotJSON
	}
	p := parser{Decoder: json.NewDecoder(bytes.NewReader(raw))}
	p.UseNumber()
	v, err := p.value(1)
	if err != nil {
		return Arguments{}, err
	}
	if v.Kind != Object {
		return Arguments{}, ErrNotJSON
	}
	return Arguments{true, v}, nil
}

// paired reports whether every escaped surrogate in valid JSON belongs to a pair: encoding/json
// decodes all others to the same character. JSON contains backslashes only in strings.
func paired(raw []byte) bool {
	high := false // the previous escape was a high surrogate
	for i := 0; i < len(raw); {
		if raw[i] != '\\' {
			if high {
				return false
			}
			i++
			continue
		}
		if raw[i+1] != 'u' {
			if high {
				return false
			}
			i += 2
			continue
		}
		unit, err := strconv.ParseUint(string(raw[i+2:i+6]), 16, 32)
		low := unit >= 0xDC00 && unit < 0xE000
		if err != nil || low != high {
			return false
		}
		high = unit >= 0xD800 && unit < 0xDC00
		i += 6
	}
	return !high
}

type parser struct {
	*json.Decoder
	values, lines int
}

// tooLong counts the line feeds of a text, and reports whether the limit is exceeded.
func (p *parser) tooLong(text string) bool {
	p.lines += strings.Count(text, "\n")
	return p.lines > MaxLines
}

func (p *parser) value(depth int) (Value, error) {
	token, err := p.Token()
	if err != nil {
		return Value{}, unexpected(err)
	}
	switch t := token.(type) {
	case json.Delim:
		if depth > MaxDepth {
			return Value{}, ErrTooLarge
		}
		return p.nested(t, depth)
	case string:
		if p.tooLong(t) {
			return Value{}, ErrTooLarge
		}
		return Value{Kind: String, Text: t}, nil
	case json.Number:
		return Value{Kind: Literal, Text: t.String()}, nil
	case bool:
		return Value{Kind: Literal, Text: strconv.FormatBool(t)}, nil
	}
	return Value{Kind: Literal, Text: "null"}, nil
}

func (p *parser) nested(open json.Delim, depth int) (Value, error) {
	v := Value{Kind: Array}
	if open == '{' {
		v.Kind = Object
	}
	known := map[string]bool{}
	for p.More() {
		if p.values++; p.values > MaxValues {
			return v, ErrTooLarge
		}
		if v.Kind == Object {
			token, err := p.Token()
			if err != nil {
				return v, unexpected(err)
			}
			name, ok := token.(string)
			folded := fold(name)
			if !ok || known[folded] || name == "__proto__" {
				return v, ErrNotJSON
			}
			if p.tooLong(name) {
				return v, ErrTooLarge
			}
			known[folded] = true
			v.Names = append(v.Names, name)
		}
		item, err := p.value(depth + 1)
		if err != nil {
			return v, err
		}
		v.Items = append(v.Items, item)
	}
	_, err := p.Token() // the closing delimiter
	return v, unexpected(err)
}

// fold returns the same text for all names that case-insensitive decoders such as encoding/json
// treat as equal. Converting to upper case first covers U+017F and U+212A.
func fold(name string) string { return strings.ToLower(strings.ToUpper(name)) }

func unexpected(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return ErrNotJSON
	}
	return errors.Join(ErrNotJSON, err)
}

// Digest returns the digest of a call. The order of object members does not matter; everything else
// does. Numbers count as written, and strings as their code points, without normalization.
func Digest(resource, tool string, a Arguments) storage.Hash {
	text := appendText(nil, 'c', resource)
	text = appendText(text, 'c', tool)
	if a.Given {
		text = a.append(text)
	}
	return sha256.Sum256(text)
}

// append appends a unique encoding of a value.
func (v Value) append(text []byte) []byte {
	switch v.Kind {
	case Array:
		text = binary.AppendUvarint(append(text, byte(Array)), uint64(len(v.Items)))
		for _, item := range v.Items {
			text = item.append(text)
		}
	case Object:
		order := make([]int, len(v.Names))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int { return strings.Compare(v.Names[a], v.Names[b]) })
		text = binary.AppendUvarint(append(text, byte(Object)), uint64(len(v.Names)))
		for _, i := range order {
			text = v.Items[i].append(appendText(text, 'n', v.Names[i]))
		}
	default:
		text = appendText(text, byte(v.Kind), v.Text)
	}
	return text
}

func appendText(text []byte, tag byte, s string) []byte {
	return append(binary.AppendUvarint(append(text, tag), uint64(len(s))), s...)
}
