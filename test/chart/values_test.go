package chart

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/metadata"
)

var update = flag.Bool("update", false, "write what is made from code: schema, table of values, alerts, golden files")

// chartDir is the directory of the chart.
const chartDir = "../../deploy/helm/mcp-authd"

// current compares a file of the chart with its generated content.
func current(t *testing.T, file string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(file)
	if *update {
		got, err = want, os.WriteFile(file, want, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("DL-04: %s is not what code makes: go test ./test/chart -update", file)
	}
}

// TestSchemaOfValues checks that values.schema.json is generated from the configuration schema and
// values.yaml (DL-04).
func TestSchemaOfValues(t *testing.T) {
	s := schemaOf(t, values(t), "").(object)
	s["$schema"] = "http://json-schema.org/draft-07/schema#"
	s["title"] = "Values of the chart mcp-authd"
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(s); err != nil {
		t.Fatal(err)
	}
	current(t, chartDir+"/values.schema.json", b.Bytes())
}

// TestTableOfValues checks that the table in the README is generated from values.yaml (DL-04).
func TestTableOfValues(t *testing.T) {
	readme, err := os.ReadFile(chartDir + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- values: made by go test ./test/chart -update -->\n", "\n<!-- end of values -->"
	before, rest, ok := strings.Cut(string(readme), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("the README has no table between %q and %q", begin, end)
	}
	table := "\n| value | default | meaning |\n|---|---|---|\n" + rows(t, values(t), "")
	current(t, chartDir+"/README.md", []byte(before+begin+table+end+after))
}

// TestAlertsOfChart checks that the chart's alerts equal those of deploy/prometheus (OP-11).
func TestAlertsOfChart(t *testing.T) {
	want, err := os.ReadFile("../../deploy/prometheus/mcp-authd.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	current(t, chartDir+"/files/mcp-authd.rules.yaml", want)
}

// TestWellKnownNames checks that the chart routes each well-known name in the code (AS-14, RS-06).
func TestWellKnownNames(t *testing.T) {
	const at = "/below"
	var names []string
	for _, p := range append(metadata.AuthorizationServerPaths("https://auth.example.com"+at),
		metadata.ProtectedResourcePath("https://auth.example.com"+at)) {
		if name, inserted := strings.CutSuffix(strings.TrimSuffix(p, "/"), at); inserted {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	current(t, chartDir+"/files/well-known.txt", []byte(strings.Join(slices.Compact(names), "\n")+"\n"))
}

// TestDocumentedValues checks that the chart accepts the values in the manual (DL-04).
func TestDocumentedValues(t *testing.T) {
	b, err := os.ReadFile(chartDir + "/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range []string{"../../docs/kubernetes.md", chartDir + "/README.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range forHelm.FindAllStringSubmatch(string(text), -1) {
			found++
			var shown object
			if err := yaml.Unmarshal([]byte(block[1]), &shown); err != nil {
				t.Fatal(err)
			}
			if err := resolved.Validate(shown); err != nil {
				t.Errorf("DL-04: %s shows values that are refused: %v\n%s", page, err, block[1])
			}
		}
	}
	if found < 5 {
		t.Errorf("%d blocks of values", found)
	}
	if err := resolved.Validate(object{"config": object{"secret_key": "abc"}}); err == nil {
		t.Error("DL-04: a secret among the values is not refused")
	}
}

var forHelm = regexp.MustCompile("(?s)<!-- yaml: for Helm -->\n```yaml\n(.*?)```")

// setByChart lists keys and groups of the configuration that the chart sets.
var setByChart = []string{"listen", "management.listen", "data_dir", "tls", "replica"}

// choices lists the allowed values of some keys.
var choices = map[string][]any{
	"database.type":    {"sqlite", "postgres"},
	"image.pullPolicy": {"Always", "IfNotPresent", "Never"},
	"service.type":     {"ClusterIP", "NodePort", "LoadBalancer"},
}

// ofKubernetes lists values that are copied into a manifest: kubeconform and the cluster check
// them.
var ofKubernetes = []string{"resources", "networkPolicy.metricsFrom"}

type object = map[string]any

func values(t *testing.T) *yaml.Node {
	t.Helper()
	text, err := os.ReadFile(chartDir + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Content[0]
}

var commentMark = regexp.MustCompile(`(?m)^# ?(-- )?`)

// says returns the comment above a key as one line.
func says(key *yaml.Node) string {
	if !strings.HasPrefix(key.HeadComment, "# -- ") {
		return ""
	}
	return strings.Join(strings.Fields(commentMark.ReplaceAllString(key.HeadComment, "")), " ")
}

// each returns the keys of a group at a path, with their values.
func each(n *yaml.Node, at string) iter.Seq2[*yaml.Node, entry] {
	return func(yield func(*yaml.Node, entry) bool) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			here := strings.TrimPrefix(at+"."+n.Content[i].Value, ".")
			if !yield(n.Content[i], entry{n.Content[i+1], here}) {
				return
			}
		}
	}
}

// entry is a value and its path.
type entry struct {
	value *yaml.Node
	at    string
}

// schemaOf returns the schema of a value, based on its default.
func schemaOf(t *testing.T, n *yaml.Node, at string) any {
	t.Helper()
	switch {
	case at == "config":
		return schemaOfConfig(t)
	case at == "secrets":
		return object{
			"type": "object", "propertyNames": object{"pattern": secretKeys(t)},
			"additionalProperties": object{
				"type": "object", "additionalProperties": false, "required": []string{"name", "key"},
				"properties": object{"name": object{"type": "string"}, "key": object{"type": "string"}},
			},
		}
	case at == "routes.extra":
		text := object{"type": "string"}
		return object{"type": "array", "items": object{
			"type": "object", "additionalProperties": false, "required": []string{"host", "paths"},
			"properties": object{"host": text, "paths": object{"type": "array", "items": text}},
		}}
	case n.Kind == yaml.SequenceNode:
		return object{"type": "array"}
	case n.Kind == yaml.MappingNode && len(n.Content) > 0 && !slices.Contains(ofKubernetes, at):
		properties := object{}
		for key, e := range each(n, at) {
			p := schemaOf(t, e.value, e.at).(object)
			if text := says(key); text != "" {
				p["description"] = text
			}
			properties[key.Value] = p
		}
		if at == "" { // for charts that use this one as a dependency
			properties["global"] = object{"type": "object"}
		}
		return object{"type": "object", "additionalProperties": false, "properties": properties}
	case n.Kind == yaml.MappingNode:
		return object{"type": "object"}
	case n.Tag == "!!int":
		return object{"type": "integer", "minimum": 0}
	case n.Tag == "!!bool":
		return object{"type": "boolean"}
	case choices[at] != nil:
		return object{"type": "string", "enum": choices[at]}
	}
	return object{"type": "string"}
}

// forChart returns the configuration schema without the keys that the chart sets.
func forChart(t *testing.T) object {
	t.Helper()
	var s object
	if err := json.Unmarshal(config.Schema(), &s); err != nil {
		t.Fatal(err)
	}
	for _, key := range setByChart {
		group, name := s, key
		if above, below, ok := strings.Cut(key, "."); ok {
			group, name = s["properties"].(object)[above].(object), below
		}
		if _, ok := group["properties"].(object)[name]; !ok {
			t.Fatalf("the configuration has no %s", key)
		}
		delete(group["properties"].(object), name)
	}
	return s
}

// schemaOfConfig returns forChart without secrets, for the schema of values.
func schemaOfConfig(t *testing.T) object {
	t.Helper()
	s := forChart(t)
	delete(s, "$schema")
	delete(s, "title")
	withoutSecrets(s)
	return s
}

// isSecret reports whether a schema describes a secret or a list of secrets.
func isSecret(s object) bool {
	if items, ok := s["items"].(object); ok {
		return items["writeOnly"] == true
	}
	return s["writeOnly"] == true
}

func withoutSecrets(s object) {
	if items, ok := s["items"].(object); ok {
		withoutSecrets(items)
	}
	properties, _ := s["properties"].(object)
	maps.DeleteFunc(properties, func(_ string, p any) bool { return isSecret(p.(object)) })
	for _, p := range properties {
		withoutSecrets(p.(object))
	}
}

// secretKeys returns a pattern for the keys of all secrets, in the form of environment variables.
func secretKeys(t *testing.T) string {
	t.Helper()
	var all []string
	var collect func(s object, at string)
	collect = func(s object, at string) {
		for key, p := range s["properties"].(object) {
			p, here := p.(object), strings.TrimPrefix(at+`\.`+key, `\.`)
			items, _ := p["items"].(object)
			switch {
			case isSecret(p):
				all = append(all, here)
			case p["properties"] != nil:
				collect(p, here)
			case items["properties"] != nil:
				collect(items, here+`\.[0-9]+`)
			}
		}
	}
	collect(forChart(t), "")
	slices.Sort(all)
	return "^(" + strings.Join(all, "|") + ")$"
}

// rows returns the rows of the table of values.
func rows(t *testing.T, n *yaml.Node, at string) string {
	t.Helper()
	var out strings.Builder
	for key, e := range each(n, at) {
		text := says(key)
		if text == "" && e.value.Kind == yaml.MappingNode {
			out.WriteString(rows(t, e.value, e.at))
			continue
		}
		if text == "" {
			t.Errorf("values.yaml says nothing of %s: write a comment that begins with '# -- '", e.at)
		}
		var plain any
		if err := e.value.Decode(&plain); err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(plain)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "| `%s` | `%s` | %s |\n", e.at, b, strings.ReplaceAll(text, "|", `\|`))
	}
	return out.String()
}

// leads reports whether the chart's routes lead a URL to the server. Their prefixes match whole
// segments.
func leads(routes map[string][]string, to string) bool {
	u, err := url.Parse(to)
	return err == nil && slices.ContainsFunc(routes[u.Hostname()], func(prefix string) bool {
		return prefix == "/" || path.Clean(u.Path) == prefix || strings.HasPrefix(u.Path, prefix+"/")
	})
}
