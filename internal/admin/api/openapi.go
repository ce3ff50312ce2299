package api

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

// object is a JSON object of the description.
type object = map[string]any

// Describe returns the OpenAPI 3.1 description of the API at a root, for client generators.
func Describe(root string) any {
	issuer := strings.TrimSuffix(root, "/api/v1")
	s := newSchemas("#/components/schemas/", false)
	s.of(problemType)
	paths := object{}
	for _, v := range admin.All() {
		spec := v.Spec()
		path, _ := paths[spec.Path].(object)
		if path == nil {
			path = object{}
			paths[spec.Path] = path
		}
		path[strings.ToLower(spec.Method)] = describe(v, s)
	}
	scopes := object{
		ScopeRead: "read what the role of the person may read", ScopeWrite: "do what the role may do",
	}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "mcp-authd", "version": "1", "license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"description": "What an operator of mcp-authd can do. The names are those of the commands.",
		},
		"servers":  []any{object{"url": root}},
		"security": []any{object{"oauth": []string{ScopeRead}}},
		"tags":     tags(),
		"paths":    paths,
		"components": object{
			"schemas": s.byName,
			"responses": object{"Problem": object{
				"description": "What went wrong (RFC 9457)",
				"content":     object{"application/problem+json": object{"schema": s.of(problemType)}},
			}},
			"securitySchemes": object{"oauth": object{"type": "oauth2", "flows": object{
				"authorizationCode": object{
					"authorizationUrl": issuer + "/authorize", "tokenUrl": issuer + "/token", "scopes": scopes,
				},
				"clientCredentials": object{"tokenUrl": issuer + "/token", "scopes": scopes},
			}}},
		},
	}
}

func tags() (out []any) {
	var nouns []string
	for _, v := range admin.All() {
		nouns = append(nouns, v.Spec().Noun())
	}
	slices.Sort(nouns)
	for _, noun := range slices.Compact(nouns) {
		out = append(out, object{"name": noun})
	}
	return out
}

// describe returns the description of one operation.
func describe(v admin.Verb, s *schemas) object {
	spec := v.Spec()
	out := object{
		"operationId": operationID(spec.Name), "tags": []string{spec.Noun()}, "summary": spec.Summary,
		"security":  []any{object{"oauth": scopeFor(spec)}},
		"responses": object{"default": object{"$ref": "#/components/responses/Problem"}},
		"x-roles":   append([]admin.Role{admin.Administrator}, spec.Roles...),
	}
	if spec.Details != "" {
		out["description"] = spec.Details
	}
	if spec.Fresh {
		out["x-fresh"] = true
	}
	answers := out["responses"].(object)
	answers[strconv.Itoa(http.StatusOK)] = object{
		"description": "The output", "content": jsonContent(s.of(v.Output())),
	}
	if spec.Changes() {
		answers[strconv.Itoa(http.StatusAccepted)] = object{
			"description": "It waits for a second administrator", "content": jsonContent(s.of(proposalType)),
		}
	}
	if p := parameters(v, s); len(p) > 0 {
		out["parameters"] = p
	}
	if body := s.object(v.Input(), inPath(spec.Path)); spec.HasBody() && len(body["properties"].(object)) > 0 {
		out["requestBody"] = object{"required": body["required"] != nil, "content": jsonContent(body)}
	}
	return out
}

func jsonContent(schema any) object { return object{"application/json": object{"schema": schema}} }

// parameters returns the path parameters and, for a GET, the query parameters.
func parameters(v admin.Verb, s *schemas) (out []any) {
	spec, fields := v.Spec(), fieldsOf(v.Input())
	path := inPath(spec.Path)
	for _, name := range path {
		out = append(out, s.parameter(fields[name], name, "path", true))
	}
	if spec.Changes() {
		out = append(out, object{
			"name": "If-Match", "in": "header", "schema": object{"type": "string"},
			"description": "the ETag that the thing had when it was read",
		}, object{
			"name": "Idempotency-Key", "in": "header",
			"schema":      object{"type": "string", "minLength": 1, "maxLength": maxKey},
			"description": "a random text of the caller, under which this is carried out once in 24 hours",
		})
		return out
	}
	if spec.HasBody() {
		return out
	}
	for _, name := range s.names(v.Input()) {
		if !slices.Contains(path, name) {
			out = append(out, s.parameter(fields[name], name, "query", !optional(fields[name])))
		}
	}
	return out
}

// operationID returns the name of an operation as one word: userSetRole.
func operationID(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == ' ' || r == '-' })
	for i := 1; i < len(words); i++ {
		words[i] = strings.ToUpper(words[i][:1]) + words[i][1:]
	}
	return strings.Join(words, "")
}
