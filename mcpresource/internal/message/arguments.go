package message

import (
	"bytes"
	"encoding/json"
	"errors"
)

// maxValues is the maximum number of values in the arguments of a call.
const maxValues = 10_000

// Arguments decodes the arguments of a call. known are the names that the caller reads. Numbers are
// json.Number; without arguments the map is empty. It also rejects more than 10,000 values.
func Arguments(raw json.RawMessage, known ...string) (map[string]any, error) {
	if raw == nil {
		return map[string]any{}, nil
	}
	if err := checkDepth(raw); err != nil {
		return nil, err
	}
	members, err := object(raw, known...)
	if err != nil {
		return nil, err
	}
	left := maxValues
	out := make(map[string]any, len(members))
	for _, m := range members {
		if err := checkKey(m.name, known); err != nil { // two names that a policy knows may differ only in case
			return nil, err
		}
		d := json.NewDecoder(bytes.NewReader(m.value))
		d.UseNumber()
		if out[m.name], err = strictValue(d, &left); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// strictValue decodes the next value; left is the number of values still allowed.
func strictValue(d *json.Decoder, left *int) (any, error) {
	if *left--; *left < 0 {
		return nil, errors.New("more than 10000 values")
	}
	t, err := d.Token()
	if err != nil {
		return nil, errors.New("not JSON")
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
			return nil, errors.New("not JSON")
		}
		if _, dup := out[k]; dup {
			return nil, errors.New("a key occurs twice")
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
		return errors.New("not JSON")
	}
	return nil
}
