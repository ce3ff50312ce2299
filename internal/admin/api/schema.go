package api

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

var (
	proposalType = reflect.TypeFor[admin.Proposal]()
	problemType  = reflect.TypeFor[Problem]()
	timeType     = reflect.TypeFor[time.Time]()
	rawType      = reflect.TypeFor[json.RawMessage]()
	textType     = reflect.TypeFor[encoding.TextMarshaler]()
)

// schemas collects the schemas of named structs.
type schemas struct {
	byName object
	types  map[string]reflect.Type // the struct of each name
	at     string                  // the prefix of references to them
	nulls  bool                    // values that are nil in Go may be null
}

func newSchemas(at string, nulls bool) *schemas {
	return &schemas{byName: object{}, types: map[string]reflect.Type{}, at: at, nulls: nulls}
}

// Schema returns the JSON Schema of a struct for the tools of an MCP server. The schema of an input
// permits no other members than its fields.
func Schema(t reflect.Type, input bool) map[string]any {
	s := newSchemas("#/$defs/", !input)
	out := s.object(t, nil)
	if input {
		out["additionalProperties"] = false
	}
	if len(s.byName) > 0 {
		out["$defs"] = s.byName
	}
	return out
}

// of returns the schema of a type as encoding/json writes it: for a named struct, a reference.
func (s *schemas) of(t reflect.Type) object {
	switch {
	case t == timeType:
		return object{"type": "string", "format": "date-time"}
	case t == rawType:
		return object{}
	case t.Implements(textType):
		return object{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		if s.nulls {
			return object{"anyOf": []any{s.of(t.Elem()), object{"type": "null"}}}
		}
		return s.of(t.Elem())
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return object{"type": "integer"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return object{"type": "string", "contentEncoding": "base64"}
		}
		return object{"type": s.orNull("array"), "items": s.of(t.Elem())}
	case reflect.Map:
		return object{"type": s.orNull("object"), "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		return s.named(t)
	}
	return object{}
}

// named returns a reference to the schema of a struct. It panics if two structs have the same name,
// because callers would confuse them.
func (s *schemas) named(t reflect.Type) object {
	name := typeName(t)
	if name == "" {
		return s.object(t, nil)
	}
	known, ok := s.types[name]
	switch {
	case !ok:
		s.types[name] = t
		s.byName[name] = object{} // in case it refers to itself
		s.byName[name] = s.object(t, nil)
	case known != t:
		panic(fmt.Sprintf("api: the schemas of %s and %s would have one name, %s", known, t, name))
	}
	return object{"$ref": s.at + name}
}

func (s *schemas) orNull(kind string) any {
	if s.nulls {
		return []string{kind, "null"}
	}
	return kind
}

// typeName returns the name of a struct. A page is named after its items.
func typeName(t reflect.Type) string {
	outer, inner, generic := strings.Cut(t.Name(), "[")
	if generic {
		inner = strings.TrimSuffix(inner, "]")
		outer = inner[strings.LastIndexAny(inner, "./")+1:] + outer
	}
	if outer == "" {
		return ""
	}
	return strings.ToUpper(outer[:1]) + outer[1:]
}

// object returns the schema of a struct, leaving out some of its fields.
func (s *schemas) object(t reflect.Type, without []string) object {
	properties, required := object{}, []string{}
	fields := fieldsOf(t)
	for _, name := range s.names(t) {
		if slices.Contains(without, name) {
			continue
		}
		f := fields[name]
		properties[name] = s.described(f)
		if !optional(f) {
			required = append(required, name)
		}
	}
	out := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// names returns the names of the fields of a struct, in order.
func (s *schemas) names(t reflect.Type) (out []string) {
	fields := fieldsOf(t)
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if known, ok := fields[name]; ok && slices.Equal(known.Index, f.Index) {
			out = append(out, name)
		}
	}
	return out
}

func (s *schemas) described(f reflect.StructField) object {
	out := s.of(f.Type)
	if says := f.Tag.Get("jsonschema"); says != "" {
		out["description"] = says
	}
	return out
}

func (s *schemas) parameter(f reflect.StructField, name, in string, required bool) object {
	out := object{"name": name, "in": in, "schema": s.of(f.Type)}
	if says := f.Tag.Get("jsonschema"); says != "" {
		out["description"] = says
	}
	if required {
		out["required"] = true
	}
	return out
}

// optional reports whether a field may be absent.
func optional(f reflect.StructField) bool {
	tag := f.Tag.Get("json")
	return strings.Contains(tag, ",omitempty") || strings.Contains(tag, ",omitzero") || f.Type.Kind() == reflect.Pointer
}
