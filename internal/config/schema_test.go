package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

var update = flag.Bool("update", false, "write schema.json")

// TestSchema checks that the shipped schema matches the types, the validation and keys.yaml
// (DL-05).
func TestSchema(t *testing.T) {
	want := newSchemaMaker(t).make()
	if *update {
		if err := os.WriteFile("schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(schema, want) {
		t.Error("DL-05: schema.json is old: go test ./internal/config -run TestSchema -update")
	}
}

// TestSchemaSays checks that a server also refuses whatever the schema refuses, and names the key
// (DL-05).
func TestSchemaSays(t *testing.T) {
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, fault string }{
		{"issuer: https://auth.example.com\ntokens: {access_ttl: 15m, status_ttl: 0, code_ttl: 1m30s}", ""},
		{"resources: [{uri: https://a.example/mcp, scopes: [{name: mcp, max_age: 15m}]}]", ""},
		{"traces: {sample: 0.5}\nsecret_key_old: [a, b]", ""},
		{"isuer: https://auth.example.com", "isuer"},
		{"tokens: {algorithm: HS256}", "algorithm"},
		{"tokens: {access_ttl: 15 minutes}", "access_ttl"},
		{"resources: [{uri: https://a.example/mcp, tools_accept: maybe}]", "tools_accept"},
		{"api: {enabled: 'yes'}", "enabled"},
		{"login: {second_factor: sometimes}", "second_factor"},
		{"audit: {sinks: [{id: a, kind: telegram}]}", "kind"},
	} {
		var value any
		if err := yaml.Unmarshal([]byte(c.text), &value); err != nil {
			t.Fatal(err)
		}
		err := resolved.Validate(value)
		if c.fault == "" && err != nil || c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("DL-05: %s: got %v, want a fault of %q", c.text, err, c.fault)
		}
	}
}

// schemaMaker generates the schema of the configuration.
type schemaMaker struct {
	t      *testing.T
	choice map[string][]string
	preset *Config
}

func newSchemaMaker(t *testing.T) *schemaMaker {
	t.Helper()
	m := &schemaMaker{t: t, choice: map[string][]string{}}
	m.preset = Default(func(string) string { return "" })
	m.preset.DataDir = "" // depends on this machine
	for _, k := range Reference() {
		if len(k.Values) == 0 {
			continue
		}
		m.choice[k.Path] = slices.Clone(k.Values)
		if k.Default == "" || saidOf(k.Path).Else != "" && k.Default != "required" {
			m.choice[k.Path] = append(m.choice[k.Path], "") // it may be omitted
		}
	}
	return m
}

func (m *schemaMaker) make() []byte {
	s := m.object(reflect.TypeFor[Config](), "", reflect.ValueOf(m.preset).Elem())
	s["$schema"] = "http://json-schema.org/draft-07/schema#"
	s["title"] = "Configuration of mcp-authd"
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(s); err != nil {
		m.t.Fatal(err)
	}
	return b.Bytes()
}

type node = map[string]any

// object returns the schema of a group of keys. preset holds their defaults, if any.
func (m *schemaMaker) object(t reflect.Type, path string, preset reflect.Value) node {
	properties := node{}
	for f := range fields(t) {
		here, value := join(path, f.key), reflect.Value{}
		if preset.IsValid() {
			value = preset.Field(f.index)
		}
		p := m.value(f.Type, here, value)
		p["description"] = described(here)
		properties[f.key] = p
	}
	return node{"type": "object", "additionalProperties": false, "properties": properties}
}

func (m *schemaMaker) value(t reflect.Type, path string, preset reflect.Value) node {
	switch {
	case t == reflect.TypeFor[Duration](), t == reflect.TypeFor[storage.Age]():
		p := node{
			"type": []string{"string", "integer"}, "minimum": 0, "maximum": 0,
			"pattern": `^(0|[0-9.]+d|([0-9.]+(ns|us|µs|ms|s|m|h))+)$`,
		}
		if preset.IsValid() && !preset.IsZero() {
			p["default"] = fmt.Sprint(preset.Interface())
		}
		return p
	case t.Kind() == reflect.Struct:
		return m.object(t, path, preset)
	case t.Kind() == reflect.Slice:
		p := node{"type": "array", "items": m.value(t.Elem(), path+"[]", reflect.Value{})}
		if preset.IsValid() && preset.Len() > 0 && t.Elem().Kind() == reflect.String {
			p["default"] = preset.Interface()
		}
		return p
	case t.Kind() == reflect.Map:
		return node{"type": "object", "additionalProperties": node{"type": "string"}}
	}
	p := node{"type": map[reflect.Kind]string{
		reflect.String: "string", reflect.Bool: "boolean", reflect.Int: "integer", reflect.Float64: "number",
	}[t.Kind()]}
	if p["type"] == "" {
		m.t.Fatalf("%s has a type of which the schema knows nothing: %s", path, t)
	}
	if t == reflect.TypeFor[Secret]() {
		p["writeOnly"] = true
	}
	if all := m.choice[path]; all != nil {
		p["enum"] = all
	}
	if path == "trust[].require_jti" { // true, false, or the preset's value
		return node{"type": []string{"string", "boolean"}, "enum": []any{true, false, "true", "false", ""}}
	}
	if preset.IsValid() && !preset.IsZero() || preset.IsValid() && t.Kind() == reflect.Bool {
		p["default"] = preset.Interface()
	}
	return p
}

// described returns the text that an editor shows for a key. It is the entry of keys.yaml without
// links and markup, with the default if the schema has none.
func described(path string) string {
	about := saidOf(path)
	if about.Is == "" {
		about = saidOf(path + "[]")
	}
	says := about.Is
	if about.Else != "" && about.Else != "required" {
		says += "; without it: " + about.Else
	}
	return strings.ReplaceAll(link.ReplaceAllString(says, "$1"), "`", "")
}

var link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
