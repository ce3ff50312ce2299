package api_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/admin/api"
	"github.com/mcp-authd/mcp-authd/internal/testkit/npmtest"
)

// TestDescription checks that the description contains every operation, and that its references
// resolve.
func TestDescription(t *testing.T) {
	r := newRig(t)
	w := r.do("", "GET", "/openapi.json", "")
	r.is(w, 200, "")
	var doc struct {
		Paths      map[string]map[string]struct{ OperationID string }
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, v := range admin.All() {
		s := v.Spec()
		o := doc.Paths[s.Path][strings.ToLower(s.Method)]
		if o.OperationID == "" || ids[o.OperationID] {
			t.Errorf("OB-10: %s has the id %q", s.Name, o.OperationID)
		}
		ids[o.OperationID] = true
	}
	for _, ref := range strings.Split(w.Body.String(), `"$ref":"#/components/schemas/`)[1:] {
		name, _, _ := strings.Cut(ref, `"`)
		if _, ok := doc.Components.Schemas[name]; !ok {
			t.Errorf("the schema %s is missing", name)
		}
	}
}

// TestAGeneratorAcceptsTheDescription checks that openapi-typescript generates types that the
// TypeScript compiler accepts (OB-10).
func TestAGeneratorAcceptsTheDescription(t *testing.T) {
	dir := t.TempDir()
	doc, err := json.Marshal(api.Describe(root))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "openapi.json")
	if err := os.WriteFile(file, doc, 0o600); err != nil {
		t.Fatal(err)
	}
	generate := npmtest.Command(t, "openapi-typescript", file, "--output", filepath.Join(dir, "api.ts"))
	if out, err := generate.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const use = `import type { paths, components } from "./api";
const user: components["schemas"]["User"] = { id: "usr_1", name: "alice", admin: false, disabled: false, created_at: "" };
type Role = paths["/users/{name}/role"]["put"]["requestBody"]["content"]["application/json"];
export const role: Role = { role: user.name };
`
	if err := os.WriteFile(filepath.Join(dir, "use.ts"), []byte(use), 0o600); err != nil {
		t.Fatal(err)
	}
	compile := npmtest.Command(t, "tsc", "--noEmit", "--strict", "--skipLibCheck", "--lib", "es2022",
		filepath.Join(dir, "use.ts"))
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
