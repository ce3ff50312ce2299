package toolcall

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Arguments are the arguments of a call as a user types them.
type Arguments struct {
	object map[string]json.RawMessage // from a JSON object
	texts  map[string]string          // from name=value; the tool's input schema determines the type
}

// ReadArguments reads arguments from name=value pairs and from one JSON object, which may be "".
// Each argument must be given only once.
func ReadArguments(pairs []string, object string) (Arguments, error) {
	a := Arguments{texts: map[string]string{}}
	if object != "" {
		if json.Unmarshal([]byte(object), &a.object) != nil || a.object == nil {
			return a, fmt.Errorf("the arguments %s are no JSON object", object)
		}
	}
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return a, fmt.Errorf("the argument %q is not name=value", pair)
		}
		_, twice := a.texts[name]
		if _, also := a.object[name]; twice || also {
			return a, fmt.Errorf("the argument %q is given twice", name)
		}
		a.texts[name] = value
	}
	return a, nil
}

// of returns the arguments for a tool with an input schema. A text is parsed as JSON unless the
// schema allows a string. Numbers keep their notation, because a tool call approval covers the
// exact text.
func (a Arguments) of(schema any) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	for name, value := range a.object {
		out[name] = value
	}
	root, _ := schema.(map[string]any)
	properties, _ := root["properties"].(map[string]any)
	for name, text := range a.texts {
		switch kinds := kindsOf(properties[name], root, maxSchemaDepth); {
		case kinds == nil || slices.Contains(kinds, "string"):
			quoted, err := json.Marshal(text)
			if err != nil {
				return nil, err
			}
			out[name] = quoted
		case json.Valid([]byte(text)):
			out[name] = json.RawMessage(text)
		default:
			return nil, fmt.Errorf("the argument %s must be JSON of type %s, not %q", name,
				strings.Join(kinds, " or "), text)
		}
	}
	return out, nil
}

// maxSchemaDepth limits references and choices in the schema of one argument.
const maxSchemaDepth = 8

// kindsOf returns the types that a schema allows for a value, or nil if it allows any or the types
// are unknown.
func kindsOf(schema any, root map[string]any, depth int) (kinds []string) {
	s, ok := schema.(map[string]any)
	if !ok || depth == 0 {
		return nil
	}
	switch t := s["type"].(type) {
	case string:
		return []string{t}
	case []any:
		for _, one := range t {
			kind, _ := one.(string)
			kinds = append(kinds, kind)
		}
		return kinds
	}
	if ref, ok := s["$ref"].(string); ok {
		return kindsOf(pointed(root, ref), root, depth-1)
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		choices, _ := s[word].([]any)
		for _, choice := range choices {
			of := kindsOf(choice, root, depth-1)
			if of == nil {
				return nil
			}
			kinds = append(kinds, of...)
		}
		if kinds != nil {
			return kinds
		}
	}
	values, ok := s["enum"].([]any)
	if value, one := s["const"]; one {
		values, ok = []any{value}, true
	}
	if !ok {
		return nil
	}
	for _, value := range values {
		kinds = append(kinds, kindOf(value))
	}
	return kinds
}

// kindOf returns the type of a value decoded from JSON.
func kindOf(value any) string {
	switch value.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case nil:
		return "null"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "number"
}

// pointed returns the part of a schema that a local reference such as #/$defs/Amount names, or nil.
func pointed(root map[string]any, ref string) any {
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil
	}
	var at any = root
	for name := range strings.SplitSeq(path, "/") {
		in, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = in[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]
	}
	return at
}
