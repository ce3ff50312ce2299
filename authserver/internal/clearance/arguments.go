package clearance

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/strictjson"
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
	err := strictjson.Check(raw, strictjson.Limits{Depth: MaxDepth, Values: MaxValues})
	switch {
	case errors.Is(err, strictjson.ErrLarge):
		return Arguments{}, ErrTooLarge
	case err != nil:
		return Arguments{}, errors.Join(ErrNotJSON, err)
	}
	p := parser{}
	v, err := p.value(bytes.TrimSpace(raw))
	if err != nil {
		return Arguments{}, err
	}
	if v.Kind != Object {
		return Arguments{}, ErrNotJSON
	}
	return Arguments{true, v}, nil
}

// parser reads valid and unambiguous JSON, and counts line feeds.
type parser struct{ lines int }

// text returns a decoded string.
func (p *parser) text(raw []byte) (string, error) {
	text, ok := strictjson.Unquote(raw)
	if !ok {
		return "", ErrNotJSON
	}
	if p.lines += strings.Count(text, "\n"); p.lines > MaxLines {
		return "", ErrTooLarge
	}
	return text, nil
}

func (p *parser) value(raw []byte) (v Value, err error) {
	switch raw[0] {
	case '{':
		return p.object(raw)
	case '[':
		return p.array(raw)
	case '"':
		text, err := p.text(raw)
		return Value{Kind: String, Text: text}, err
	}
	return Value{Kind: Literal, Text: string(raw)}, nil
}

func (p *parser) object(raw []byte) (Value, error) {
	v := Value{Kind: Object}
	err := strictjson.Each(raw, func(key, value []byte) error {
		name, err := p.text(key)
		if err != nil {
			return err
		}
		item, err := p.value(value)
		v.Names, v.Items = append(v.Names, name), append(v.Items, item)
		return err
	})
	return v, err
}

func (p *parser) array(raw []byte) (Value, error) {
	var elements []json.RawMessage
	if err := json.Unmarshal(raw, &elements); err != nil {
		return Value{}, ErrNotJSON
	}
	v := Value{Kind: Array}
	for _, e := range elements {
		item, err := p.value(e)
		if err != nil {
			return v, err
		}
		v.Items = append(v.Items, item)
	}
	return v, nil
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
