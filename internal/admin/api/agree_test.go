package api_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/admin/api"
	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// document is the description of the API, as a client reads it.
type document struct {
	t          *testing.T
	resolved   map[string]*jsonschema.Resolved
	Paths      map[string]map[string]documented
	Components struct {
		Schemas   map[string]any
		Responses map[string]response
	}
}

type documented struct {
	Parameters  []struct{ Name, In string }
	RequestBody struct {
		Required bool
		Content  map[string]struct {
			Schema struct {
				Required   []string
				Properties map[string]struct{ Type string }
			}
		}
	}
	Responses map[string]response
}

type response struct {
	Content map[string]struct{ Schema any }
}

func newDocument(t *testing.T) *document {
	text, err := json.Marshal(api.Describe(root))
	d := &document{t: t, resolved: map[string]*jsonschema.Resolved{}}
	if err == nil {
		err = json.Unmarshal(text, d)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// fits checks a response against the description for its status.
func (d *document) fits(o documented, name string, status int, body []byte) {
	d.t.Helper()
	r, ok := o.Responses[fmt.Sprint(status)]
	kind := "application/json"
	if !ok {
		r, kind = d.Components.Responses["Problem"], "application/problem+json"
	}
	resolved := d.resolve(r.Content[kind].Schema)
	var got any
	if err := json.Unmarshal(body, &got); err != nil {
		d.t.Fatalf("OB-10: %s answers %d %s", name, status, body)
	}
	if err := resolved.Validate(got); err != nil {
		d.t.Errorf("OB-10: %s answers %d %s: %v", name, status, body, err)
	}
}

// resolve prepares a schema of the document for validation.
func (d *document) resolve(schema any) *jsonschema.Resolved {
	d.t.Helper()
	text, err := json.Marshal(map[string]any{"$defs": d.Components.Schemas, "allOf": []any{schema}})
	if err != nil {
		d.t.Fatal(err)
	}
	here := strings.ReplaceAll(string(text), "#/components/schemas/", "#/$defs/")
	if known, ok := d.resolved[here]; ok {
		return known
	}
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(here), &s); err != nil {
		d.t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		d.t.Fatal(err)
	}
	d.resolved[here] = resolved
	return resolved
}

// filled returns a body with every required member, each of the right type.
func filled(o documented) map[string]any {
	out := map[string]any{}
	schema := o.RequestBody.Content["application/json"].Schema
	for _, name := range schema.Required {
		out[name] = map[string]any{
			"string": "", "boolean": false, "integer": 0, "number": 0, "array": []any{}, "object": map[string]any{},
		}[schema.Properties[name].Type]
		if out[name] == nil {
			out[name] = map[string]any{}
		}
	}
	return out
}

// body returns the filled body of an operation as text.
func (d *document) body(spec admin.Spec) string {
	d.t.Helper()
	b, err := json.Marshal(filled(d.Paths[spec.Path][strings.ToLower(spec.Method)]))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(b)
}

func (d *document) send(r *rig, v admin.Verb, body map[string]any) (status int) {
	d.t.Helper()
	spec := v.Spec()
	path := spec.Path
	for field, name := range map[string]string{"name": "root", "user": "root"} {
		path = strings.ReplaceAll(path, "{"+field+"}", name)
	}
	for strings.Contains(path, "{") { // no other object exists
		before, rest, _ := strings.Cut(path, "{")
		_, after, _ := strings.Cut(rest, "}")
		path = before + "none" + after
	}
	text := ""
	if spec.HasBody() {
		b, err := json.Marshal(body)
		if err != nil {
			d.t.Fatal(err)
		}
		text = string(b)
	}
	w := r.do("root", spec.Method, path, text)
	o := d.Paths[spec.Path][strings.ToLower(spec.Method)]
	if w.Code == http.StatusInternalServerError {
		d.t.Errorf("OB-10: %s answers %d %s", spec.Name, w.Code, w.Body)
	}
	d.fits(o, spec.Name, w.Code, w.Body.Bytes())
	return w.Code
}

// TestAnswersFitTheDescription checks that each operation responds as the document says (OB-10). It
// must accept the members of the document, and no null in their place.
func TestAnswersFitTheDescription(t *testing.T) {
	r, d := newRig(t), newDocument(t)
	r.person("root", admin.Administrator, "admin:write", time.Minute)
	r.person("anna", admin.Administrator, "admin:write", time.Minute)
	r.client(storage.Client{ID: "app", Name: "App", RedirectURIs: []string{"https://app.example.com/callback"},
		GrantTypes: []string{"authorization_code"}}, "")
	stepOf(t, r.store)
	succeeded := 0
	for _, v := range admin.All() {
		spec := v.Spec()
		o := d.Paths[spec.Path][strings.ToLower(spec.Method)]
		if !spec.HasBody() {
			if d.send(r, v, nil) == http.StatusOK {
				succeeded++
			}
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(filled(o))) {
			body := filled(o)
			delete(body, name)
			if status := d.send(r, v, body); status != http.StatusBadRequest {
				t.Errorf("OB-10: %s without %s answers %d, want 400", spec.Name, name, status)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(o.RequestBody.Content["application/json"].Schema.Properties)) {
			body := filled(o)
			body[name] = nil
			if status := d.send(r, v, body); status != http.StatusBadRequest {
				t.Errorf("OB-10: %s with null for %s answers %d, want 400", spec.Name, name, status)
			}
		}
		// An operation on root would end the test's token.
		if !strings.Contains(spec.Path, "{name}") && !strings.Contains(spec.Path, "{user}") {
			d.send(r, v, filled(o))
		}
	}
	if succeeded < 20 {
		t.Errorf("%d operations that read have succeeded", succeeded)
	}
}

// stepOf stores an attempt without a difference: a client that requests a token with an unknown
// code.
func stepOf(t *testing.T, store storage.Store) {
	t.Helper()
	now := time.Now()
	rec := attempt.NewRecorder(attempt.Config{
		Store: store, Key: make([]byte, 32), Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler),
	})
	sent := request.New(attempt.NewReference(), now, netip.MustParseAddr("192.0.2.1"))
	rec.End(httptest.NewRequest("POST", "/token", nil), sent, attempt.Taken{
		Kind: attempt.Token, Path: "/token", Answer: attempt.Answer{Status: 400, Error: "invalid_grant"},
	})
	rec.Write(t.Context())
}
