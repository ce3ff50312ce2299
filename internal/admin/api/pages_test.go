package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/admin/api"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pagetest"
)

// described is the part of the OpenAPI description that the page shows.
type described struct {
	Paths      map[string]map[string]operation `json:"paths"`
	Components struct {
		Schemas map[string]schema `json:"schemas"`
	} `json:"components"`
}

type operation struct {
	Summary     string      `json:"summary"`
	Description string      `json:"description"`
	Roles       []string    `json:"x-roles"`
	Fresh       bool        `json:"x-fresh"`
	Parameters  []parameter `json:"parameters"`
	Body        struct {
		Content content `json:"content"`
	} `json:"requestBody"`
	Responses map[string]struct {
		Content content `json:"content"`
	} `json:"responses"`
}

type content map[string]struct {
	Schema schema `json:"schema"`
}

type parameter struct {
	Name        string `json:"name"`
	In          string `json:"in"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
	Schema      schema `json:"schema"`
}

type schema struct {
	Ref         string            `json:"$ref"`
	Type        any               `json:"type"`
	Format      string            `json:"format"`
	Description string            `json:"description"`
	Items       *schema           `json:"items"`
	Values      *schema           `json:"additionalProperties"`
	Properties  map[string]schema `json:"properties"`
	Required    []string          `json:"required"`
}

// TestPage checks that the page about the HTTP API and the file beside it match the OpenAPI
// description (DL-05).
func TestPage(t *testing.T) {
	const refresh = "go test ./internal/admin/api -run TestPage"
	text, err := json.MarshalIndent(api.Describe("https://auth.example.com/api/v1"), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	var d described
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	pagetest.Is(t, *update, "reference/openapi.json", string(text)+"\n", refresh)
	pagetest.Is(t, *update, "reference/http-api.md", page(t, d, refresh), refresh)
}

func page(t *testing.T, d described, refresh string) string {
	var b strings.Builder
	b.WriteString("# HTTP API\n\n<!-- Made by: " + refresh + " -update -->\n\n")
	b.WriteString(pagetest.Words("This page lists the operations of [the administration API](../api.md), which explains tokens, responses, errors " +
		"and retries. Paths are below `/api/v1` of the issuer. The same list is available as [OpenAPI](openapi.json), " +
		"and from each server at `/api/v1/openapi.json`."))
	noun := ""
	for _, v := range admin.All() {
		spec := v.Spec()
		if spec.Noun() != noun {
			noun = spec.Noun()
			fmt.Fprintf(&b, "\n## %s\n", noun)
		}
		op, ok := d.Paths[spec.Path][strings.ToLower(spec.Method)]
		if !ok {
			t.Fatalf("the description lacks %s %s", spec.Method, spec.Path)
		}
		fmt.Fprintf(&b, "\n### %s\n\n`%s %s`\n\n%s.", spec.Name, spec.Method, spec.Path, op.Summary)
		if op.Description != "" {
			fmt.Fprintf(&b, " %s", strings.TrimSuffix(op.Description, ".")+".")
		}
		fmt.Fprintf(&b, "\n\nFor: %s.", strings.Join(op.Roles, ", "))
		if op.Fresh {
			b.WriteString(" Needs a fresh proof.")
		}
		if answer := op.Responses["200"].Content["application/json"].Schema; answer.Ref != "" {
			fmt.Fprintf(&b, " Answers %s.", kind(answer))
		}
		b.WriteString("\n")
		inputs(&b, op)
	}
	b.WriteString("\n## Schemas\n")
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		s := d.Components.Schemas[name]
		if len(s.Properties) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n\n| member | type | |\n|---|---|---|\n", name)
		members(&b, s, "")
	}
	return b.String()
}

// inputs writes a table of an operation's parameters. It omits headers, which are the same for all
// operations and described on the page about the API.
func inputs(b *strings.Builder, op operation) {
	rows := ""
	for _, p := range op.Parameters {
		if p.In != "header" {
			rows += fmt.Sprintf("| `%s` | %s | %s | %s |\n", p.Name, p.In, kind(p.Schema),
				meaning(p.Description, p.Required))
		}
	}
	body := op.Body.Content["application/json"].Schema
	for _, name := range slices.Sorted(maps.Keys(body.Properties)) {
		p := body.Properties[name]
		rows += fmt.Sprintf("| `%s` | body | %s | %s |\n", name, kind(p),
			meaning(p.Description, slices.Contains(body.Required, name)))
	}
	if rows != "" {
		b.WriteString("\n| input | in | type | |\n|---|---|---|---|\n" + rows)
	}
}

func members(b *strings.Builder, s schema, before string) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		fmt.Fprintf(b, "| `%s%s` | %s | %s |\n", before, name, kind(p),
			meaning(p.Description, false))
		members(b, p, before+name+".")
	}
}

func meaning(description string, required bool) string {
	text := strings.NewReplacer("<", `\<`, "*", `\*`, "_", `\_`).Replace(pagetest.Cell(description))
	if required {
		text = strings.TrimSuffix("required; "+text, "; ")
	}
	return text
}

// kind describes the type of a schema, with a link to a named one.
func kind(s schema) string {
	switch {
	case s.Ref != "":
		name := s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]
		return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name))
	case s.Items != nil:
		return "list of " + kind(*s.Items)
	case s.Values != nil:
		return "map to " + kind(*s.Values)
	case s.Format == "date-time":
		return "time"
	}
	if name, ok := s.Type.(string); ok {
		return name
	}
	return "any"
}
