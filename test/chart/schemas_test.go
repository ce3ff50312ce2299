//go:build release

package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// module is a Go module with definitions of objects, at a version and with the checksum of its
// content.
type module struct{ at, sum string }

var (
	kubernetes = module{"k8s.io/kubernetes@v" + kubeVersion, "h1:A2VDEiObzkYqFTKhSsn0ZEb0RlLEXpHWj93gi2HqEwE="}
	gatewayAPI = module{"sigs.k8s.io/gateway-api@v1.6.3", "h1:lKpJa5bGlraC/QeACvCpsHLdmO6y0iKfzVl6gzaFEYc="}
	operator   = module{
		"github.com/prometheus-operator/prometheus-operator@v0.85.0", "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
	}
)

// dir returns the directory of the module's content.
func (m module) dir(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", m.at)
	cmd.Dir = "../../deploy/helm/tools"
	out, err := cmd.Output()
	var has struct{ Dir, Sum, Error string }
	if jsonErr := json.Unmarshal(out, &has); err != nil || jsonErr != nil || has.Sum != m.sum {
		t.Fatalf("%s cannot be had: %v %s\n%s", m.at, err, has.Error, out)
	}
	return has.Dir
}

// TestObjects checks that Kubernetes 1.37, the Gateway API and the Prometheus operator accept each
// rendered object, without unknown fields (DL-04).
func TestObjects(t *testing.T) {
	dir := t.TempDir()
	for _, group := range []string{
		"api__v1", "apis__apps__v1", "apis__batch__v1", "apis__networking.k8s.io__v1", "apis__policy__v1",
		"apis__autoscaling__v2",
	} {
		writeKinds(t, dir, filepath.Join(kubernetes.dir(t), "api/openapi-spec/v3", group+"_openapi.json"))
	}
	writeCRD(t, dir, filepath.Join(gatewayAPI.dir(t), "config/crd/standard/gateway.networking.k8s.io_httproutes.yaml"))
	for _, kind := range []string{"servicemonitors", "prometheusrules"} {
		writeCRD(t, dir, filepath.Join(operator.dir(t), "example/prometheus-operator-crd",
			"monitoring.coreos.com_"+kind+".yaml"))
	}
	rendered := t.TempDir()
	files := []string{filepath.Join(rendered, "notes.yaml")}
	texts := map[string]string{files[0]: template(t, notes(t))}
	for name, values := range matrix(t) {
		files = append(files, filepath.Join(rendered, name+".yaml"))
		texts[files[len(files)-1]] = template(t, chartDir, "--values", values)
	}
	for file, text := range texts {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"-strict", "-summary", "-output", "json", "-schema-location",
		dir + "/{{.ResourceKind}}{{.KindSuffix}}.json"}
	out, err := run(t, "kubeconform", append(args, files...)...)
	var told struct {
		Summary struct{ Valid, Invalid, Errors, Skipped int }
	}
	if jsonErr := json.Unmarshal([]byte(out), &told); err != nil || jsonErr != nil || told.Summary.Valid < 40 ||
		told.Summary.Skipped > 0 {
		t.Errorf("DL-04: kubeconform: %v\n%s", err, out)
	}

	// The check can fail: for a misspelled field, and for a wrong type.
	for _, wrong := range []string{"enableServiceLink: false", `terminationGracePeriodSeconds: "45s"`} {
		name, _, _ := strings.Cut(wrong, ":")
		manifest := "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  " + wrong +
			"\n  containers: [{name: a, image: b}]\n"
		file := filepath.Join(t.TempDir(), "wrong.yaml")
		if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := run(t, "kubeconform", append(args, file)...); err == nil || !strings.Contains(out, name) {
			t.Errorf("kubeconform says of %q: %v\n%s", wrong, err, out)
		}
	}
}

// writeKinds writes a schema for each kind of an OpenAPI document.
func writeKinds(t *testing.T, dir, file string) {
	t.Helper()
	var doc struct {
		Components struct{ Schemas map[string]object }
	}
	read(t, file, &doc)
	for _, s := range doc.Components.Schemas {
		kinds, _ := s["x-kubernetes-group-version-kind"].([]any)
		if len(kinds) != 1 {
			continue
		}
		k := kinds[0].(object)
		write(t, dir, k["kind"].(string), k["group"].(string), k["version"].(string),
			strict(doc.Components.Schemas, s).(object))
	}
}

// writeCRD writes the schema of each version of a CustomResourceDefinition.
func writeCRD(t *testing.T, dir, file string) {
	t.Helper()
	var crd struct {
		Spec struct {
			Group    string
			Names    struct{ Kind string }
			Versions []struct {
				Name   string
				Schema struct {
					OpenAPIV3Schema object `yaml:"openAPIV3Schema" json:"openAPIV3Schema"`
				}
			}
		}
	}
	read(t, file, &crd)
	for _, v := range crd.Spec.Versions {
		s := strict(nil, v.Schema.OpenAPIV3Schema).(object)
		write(t, dir, crd.Spec.Names.Kind, crd.Spec.Group, v.Name, s)
	}
}

func read(t *testing.T, file string, to any) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Ext(file) == ".json" {
		err = json.Unmarshal(b, to)
	} else {
		err = yaml.Unmarshal(b, to)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// write writes a schema under the name that kubeconform requests.
func write(t *testing.T, dir, kind, group, version string, s object) {
	t.Helper()
	suffix := "-" + version
	if group != "" {
		group, _, _ = strings.Cut(group, ".")
		suffix = "-" + group + suffix
	}
	b, err := json.Marshal(s)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, strings.ToLower(kind+suffix)+".json"), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// strict returns a schema with references resolved, and without additional properties.
func strict(all map[string]object, of any) any {
	switch v := of.(type) {
	case []any:
		out := make([]any, 0, len(v))
		for _, one := range v {
			out = append(out, strict(all, one))
		}
		return out
	case object:
		if ref, ok := v["$ref"].(string); ok {
			name := ref[strings.LastIndex(ref, "/")+1:]
			if all[name] == nil {
				panic(fmt.Sprintf("%s is not defined", ref))
			}
			return strict(all, all[name])
		}
		out := object{}
		for key, value := range v {
			if key != "default" && key != "enum" && key != "example" {
				value = strict(all, value)
			}
			out[key] = value
		}
		_, named := out["properties"].(object)
		_, open := out["additionalProperties"]
		if named && !open && out["x-kubernetes-preserve-unknown-fields"] != true && out["type"] == "object" {
			out["additionalProperties"] = false
		}
		if out["x-kubernetes-int-or-string"] == true {
			delete(out, "type")
			out["oneOf"] = []any{object{"type": "integer"}, object{"type": "string"}}
			delete(out, "anyOf")
		}
		return out
	}
	return of
}
