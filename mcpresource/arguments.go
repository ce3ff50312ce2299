package mcpresource

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// maxValues bounds what the arguments of one call may hold for a policy to look at.
const maxValues = 10_000

// Args decodes the arguments, for a policy that depends on them: known are the names it
// goes by. Numbers are json.Number; no arguments are an empty map.
//
// It returns an error that wraps ErrAmbiguousBody, and the operation should then be
// denied, where the server might see other arguments: when a key occurs twice, or
// differs from a known one in case alone. It refuses more than 10,000 values as well.
func (op Operation) Args(known ...string) (map[string]any, error) {
	if op.Arguments == nil {
		return map[string]any{}, nil
	}
	if err := checkDepth(op.Arguments); err != nil {
		return nil, err
	}
	members, err := object(op.Arguments, known...)
	if err != nil {
		return nil, err
	}
	left := maxValues
	out := make(map[string]any, len(members))
	for k, raw := range members {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if out[k], err = strictValue(d, &left); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// strictValue decodes the next value; left is how many more there may be.
func strictValue(d *json.Decoder, left *int) (any, error) {
	if *left--; *left < 0 {
		return nil, ambiguous("more than 10000 values")
	}
	t, err := d.Token()
	if err != nil {
		return nil, ambiguous("not JSON")
	}
	switch t {
	case json.Delim('{'):
		return strictMembers(d, left)
	case json.Delim('['):
		return strictElements(d, left)
	}
	return t, nil
}

func strictMembers(d *json.Decoder, left *int) (any, error) {
	out := map[string]any{}
	for d.More() {
		t, err := d.Token()
		k, ok := t.(string)
		if err != nil || !ok {
			return nil, ambiguous("not JSON")
		}
		if _, dup := out[k]; dup {
			return nil, ambiguous("a key occurs twice")
		}
		if out[k], err = strictValue(d, left); err != nil {
			return nil, err
		}
	}
	return out, closing(d)
}

func strictElements(d *json.Decoder, left *int) (any, error) {
	out := []any{}
	for d.More() {
		v, err := strictValue(d, left)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, closing(d)
}

func closing(d *json.Decoder) error {
	if _, err := d.Token(); err != nil {
		return ambiguous("not JSON")
	}
	return nil
}

// record is what the audit may keep of an operation: arguments when asked, and of a
// name no more than somebody could have meant.
func (op Operation) record(arguments bool) Operation {
	const longest = 256
	out := Operation{Method: cut(op.Method, longest), Name: cut(op.Name, longest)}
	if arguments {
		out.Arguments = slices.Clone(op.Arguments)
	}
	return out
}

func cut(s string, longest int) string {
	if len(s) > longest {
		return strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return s
}
