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

	"github.com/mcp-authd/mcp-authd/internal/mail"
	"github.com/mcp-authd/mcp-authd/storage"
)

var update = flag.Bool("update", false, "write schema.json")

// TestSchema: the schema that is shipped is the one that types, validation and docs make (DL-05).
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

// TestSchemaSays: what it refuses is refused by a server too, and it names the key (DL-05).
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

// schemaMaker makes the schema of a configuration.
type schemaMaker struct {
	t      *testing.T
	tells  map[string]string // what docs say of a key
	choice map[string][]string
	preset *Config
}

func newSchemaMaker(t *testing.T) *schemaMaker {
	t.Helper()
	m := &schemaMaker{t: t, tells: map[string]string{}, choice: map[string][]string{}}
	m.preset = Default(func(string) string { return "" })
	m.preset.DataDir = "" // that of this machine
	m.readDocs("operating.md", "| key | default | meaning |", "")
	m.readDocs("operating.md", "Each `resources[].upstream`", "resources[].upstream.")
	m.readDocs("operating.md", "Each of `thirdparty[]`", "thirdparty[].")
	m.readDocs("trust.md", "| key | default | meaning |", "trust[].")
	m.readDocs("siem.md", "| key of `audit.sinks[]`", "audit.sinks[].")
	c := reflect.New(reflect.TypeFor[Config]()).Elem()
	fillLists(c)
	first := &c.Addr().Interface().(*Config).Resources[0].Upstream
	first.URL = "http://127.0.0.1:3000/mcp" // without one, its keys are not looked at
	m.probe(c, c, "", "")
	first.URL, first.Command = "", []string{"server"}
	m.probe(c, c, "", "")
	m.choice["mail.smtp.tls"] = []string{string(mail.STARTTLS), string(mail.Implicit), string(mail.None)}
	for _, a := range []storage.Access{storage.AccessRead, storage.AccessWrite, storage.AccessAdmin, ""} {
		m.choice["resources[].scopes[].access"] = append(m.choice["resources[].scopes[].access"], string(a))
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

// object is the schema of a group of keys; preset has their defaults, where they have any.
func (m *schemaMaker) object(t reflect.Type, path string, preset reflect.Value) node {
	properties := node{}
	for f := range fields(t) {
		here, value := join(path, f.key), reflect.Value{}
		if preset.IsValid() {
			value = preset.Field(f.index)
		}
		p := m.value(f.Type, here, value)
		if says := m.tells[here]; says != "" {
			p["description"] = says
		}
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
	if path == "trust[].require_jti" { // yes, no, or what the preset says
		return node{"type": []string{"string", "boolean"}, "enum": []any{true, false, "true", "false", ""}}
	}
	if preset.IsValid() && !preset.IsZero() || preset.IsValid() && t.Kind() == reflect.Bool {
		p["default"] = preset.Interface()
	}
	return p
}

// fillLists gives each list of groups one item, so that its keys can be tried.
func fillLists(v reflect.Value) {
	for f := range fields(v.Type()) {
		switch at := v.Field(f.index); {
		case at.Kind() == reflect.Struct:
			fillLists(at)
		case at.Kind() == reflect.Slice && at.Type().Elem().Kind() == reflect.Struct:
			at.Set(reflect.MakeSlice(at.Type(), 1, 1))
			fillLists(at.Index(0))
		}
	}
}

var (
	isNotOneOf = regexp.MustCompile(`(?m)^([^\s:]+): "no choice" is not one of (.*)$`)
	inBrackets = regexp.MustCompile(`\s*\([^)]*\)`)
)

// probe gives each text a value that is not a choice, and learns from the validation which ones are.
func (m *schemaMaker) probe(c, v reflect.Value, path, indexed string) {
	for f := range fields(v.Type()) {
		at, here, key := v.Field(f.index), join(path, f.key), join(indexed, f.key)
		switch {
		case at.Kind() == reflect.Struct:
			m.probe(c, at, here, key)
		case at.Kind() == reflect.Slice && at.Type().Elem().Kind() == reflect.Struct:
			m.probe(c, at.Index(0), here+"[]", key+"[0]")
		case at.Kind() == reflect.String:
			before, had := at.String(), c.Addr().Interface().(*Config)
			at.SetString("no choice")
			if err := had.Validate(); err != nil {
				m.learn(err.Error(), here, key, before)
			}
			at.SetString(before)
		}
	}
}

func (m *schemaMaker) learn(fault, here, key, unset string) {
	for _, said := range isNotOneOf.FindAllStringSubmatch(fault, -1) {
		if said[1] != key {
			continue
		}
		all := strings.Split(inBrackets.ReplaceAllString(said[2], ""), ", ")
		if !slices.Contains(all, unset) && strings.Contains(here, "[]") {
			all = append(all, unset) // where it may be left out
		}
		m.choice[here] = all
	}
}

var (
	row    = regexp.MustCompile("^\\| ((?:`[^`]+`(?:, | or )?)+)[^|]*\\| ([^|]*) \\| (.*) \\|$")
	link   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	quoted = regexp.MustCompile("`([^`]+)`")
)

// readDocs reads the first table after a line that begins in a way.
func (m *schemaMaker) readDocs(page, after, prefix string) {
	m.t.Helper()
	text, err := os.ReadFile("../../docs/" + page)
	if err != nil {
		m.t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n"+after)
	if !ok {
		m.t.Fatalf("docs/%s has no %q", page, after)
	}
	in, found := false, 0
	for line := range strings.Lines(rest) {
		line = strings.TrimSuffix(line, "\n")
		if !strings.HasPrefix(line, "|") && in {
			break
		}
		in = in || strings.HasPrefix(line, "|---")
		cells := row.FindStringSubmatch(line)
		if !in || cells == nil {
			continue
		}
		says := link.ReplaceAllString(cells[3], "$1")
		for _, key := range quoted.FindAllStringSubmatch(cells[1], -1) {
			m.tells[prefix+strings.TrimSuffix(key[1], "[]")] = strings.ReplaceAll(says, "`", "")
			found++
		}
	}
	if found < 5 {
		m.t.Fatalf("docs/%s has %d keys after %q", page, found, after)
	}
}
