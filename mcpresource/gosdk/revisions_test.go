package gosdk

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	protocol "github.com/mcp-authd/mcp-authd/internal/mcp"
)

// modernServer returns a server that uses members of every revision.
func modernServer() *mcp.Server {
	icons := []mcp.Icon{{Source: "https://example.com/i.png"}}
	meta := mcp.Meta{"example.com/m": "v"}
	notes := &mcp.Annotations{Priority: 1, LastModified: "2026-01-01T00:00:00Z"}
	s := mcp.NewServer(&mcp.Implementation{
		Name: "t", Title: "T", Description: "d", Version: "1", WebsiteURL: "https://example.com", Icons: icons}, nil)
	object, list := json.RawMessage(`{"type":"object"}`), json.RawMessage(`{"type":"array"}`)
	answer := func(structured any) mcp.ToolHandler {
		return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			_ = req.Session.NotifyProgress(ctx,
				&mcp.ProgressNotificationParams{Meta: meta, ProgressToken: "p", Progress: 1, Total: 2, Message: "half"})
			return &mcp.CallToolResult{Meta: meta, StructuredContent: structured, Content: []mcp.Content{
				&mcp.TextContent{Text: "words", Meta: meta, Annotations: notes},
				&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "x://y", Text: "z", Meta: meta}},
			}}, nil
		}
	}
	for name, schema := range map[string]json.RawMessage{"show": object, "array": list} {
		s.AddTool(&mcp.Tool{
			Name: name, Title: "T", Description: "d", Meta: meta, Icons: icons, InputSchema: object,
			OutputSchema: schema,
			Annotations:  &mcp.ToolAnnotations{ReadOnlyHint: true, Title: "T"},
		}, answer(map[string]json.RawMessage{
			"show": json.RawMessage(`{"n":12345678901234567890}`), "array": json.RawMessage(`[1]`)}[name]))
	}
	s.AddPrompt(&mcp.Prompt{
		Name: "p", Title: "T", Meta: meta, Icons: icons, Arguments: []*mcp.PromptArgument{{Name: "a", Title: "T"}},
	},
		func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{
				Messages: []*mcp.PromptMessage{
					{Role: "user", Content: &mcp.TextContent{Text: "words", Meta: meta, Annotations: notes}}}}, nil
		})
	read := func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{
			Contents: []*mcp.ResourceContents{{URI: req.Params.URI, Text: "z", Meta: meta}}}, nil
	}
	s.AddResource(&mcp.Resource{
		URI: "x://y", Name: "y", Title: "T", Meta: meta, Icons: icons, Annotations: notes, Size: 1}, read)
	s.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: "x://{z}", Name: "z", Title: "T", Meta: meta, Icons: icons, Annotations: notes}, read)
	return s
}

// paths collects the paths of all members of JSON, without list indexes.
func paths(prefix string, v any, into map[string]bool) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			paths(prefix+"[]", e, into)
		}
	case map[string]any:
		for k, e := range v {
			into[strings.TrimPrefix(prefix+"."+k, ".")] = true
			paths(prefix+"."+k, e, into)
		}
	}
}

// answered sends a request of a revision. It returns the members of the result, and the whole
// response.
func (r *rig) answered(t *testing.T, version, session, method, params string) (result map[string]bool, all string) {
	t.Helper()
	headers := hdr("Mcp-Session-Id", session)
	body := `{"jsonrpc":"2.0","id":3,"method":"` + method + `","params":{` + params + `}}`
	if protocol.IsStateless(version) {
		body = modern(method, params)
		headers = hdr("Mcp-Protocol-Version", version, "Mcp-Method", method)
		var named struct{ Params struct{ Name, URI string } }
		_ = json.Unmarshal([]byte(body), &named)
		if name := named.Params.Name + named.Params.URI; name != "" {
			headers["Mcp-Name"] = []string{name}
		}
	}
	got := r.ask(t, "alice-mcp", ask{body: body, headers: headers})
	text := got.text[max(0, strings.LastIndex(got.text, "data: {")+len("data: ")):]
	if !strings.HasPrefix(got.header.Get("Content-Type"), "text/event-stream") {
		text = got.text
	}
	var m struct{ Result map[string]any }
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&m); err != nil || m.Result == nil {
		t.Fatalf("%s %s: %d %s", version, method, got.status, got.text)
	}
	result = map[string]bool{}
	paths("", m.Result, result)
	return result, got.text
}

// TestRevisions: RS-73 a session has all members of its revision and none of later ones.
func TestRevisions(t *testing.T) {
	const content, message = "content[].", "messages[].content."
	since := map[string]map[string]string{ // by method, the first revision of each member
		"initialize": {
			"serverInfo.name": "", "serverInfo.title": protocol.Rev20250618,
			"serverInfo.description": protocol.Rev20251125, "serverInfo.websiteUrl": protocol.Rev20251125,
			"serverInfo.icons": protocol.Rev20251125,
		},
		"tools/list": {
			"tools[].inputSchema": "", "tools[].annotations": protocol.Rev20250326,
			"tools[].annotations.title": protocol.Rev20250326, "tools[].title": protocol.Rev20250618,
			"tools[]._meta": protocol.Rev20250618, "tools[].outputSchema": protocol.Rev20250618,
			"tools[].icons": protocol.Rev20251125, "ttlMs": protocol.Rev20260728,
			"cacheScope": protocol.Rev20260728,
		},
		"prompts/list": {
			"prompts[].name": "", "prompts[].title": protocol.Rev20250618, "prompts[]._meta": protocol.Rev20250618,
			"prompts[].arguments[].name": "", "prompts[].arguments[].title": protocol.Rev20250618,
			"prompts[].icons": protocol.Rev20251125, "ttlMs": protocol.Rev20260728,
			"cacheScope": protocol.Rev20260728,
		},
		"resources/list": {
			"resources[].size": "", "resources[].annotations.priority": "",
			"resources[].annotations.lastModified": protocol.Rev20250618,
			"resources[].title":                    protocol.Rev20250618, "resources[]._meta": protocol.Rev20250618,
			"resources[].icons": protocol.Rev20251125, "ttlMs": protocol.Rev20260728,
			"cacheScope": protocol.Rev20260728,
		},
		"resources/templates/list": {
			"resourceTemplates[].uriTemplate": "", "resourceTemplates[].annotations.priority": "",
			"resourceTemplates[].annotations.lastModified": protocol.Rev20250618,
			"resourceTemplates[].title":                    protocol.Rev20250618,
			"resourceTemplates[]._meta":                    protocol.Rev20250618,
			"resourceTemplates[].icons":                    protocol.Rev20251125, "ttlMs": protocol.Rev20260728,
		},
		"resources/read": {
			"contents[].text": "", "contents[]._meta": protocol.Rev20250618, "ttlMs": protocol.Rev20260728,
			"cacheScope": protocol.Rev20260728,
		},
		"tools/call": {
			"_meta.example.com/m": "", content + "text": "", content + "annotations.priority": "",
			content + "annotations.lastModified": protocol.Rev20250618, content + "_meta": protocol.Rev20250618,
			content + "resource.text": "", content + "resource._meta": protocol.Rev20250618,
			"structuredContent": protocol.Rev20250618, "structuredContent.n": protocol.Rev20250618,
			"resultType": protocol.Rev20260728,
		},
		"prompts/get": {
			message + "text": "", message + "annotations.priority": "",
			message + "annotations.lastModified": protocol.Rev20250618, message + "_meta": protocol.Rev20250618,
		},
	}
	asks := map[string]string{
		"tools/call": `"name":"show","arguments":{}`, "prompts/get": `"name":"p"`, "resources/read": `"uri":"x://y"`,
	}
	r := newRig(t, nil)
	r.Config.Handler = r.guard.Handler(New(r.guard, modernServer(), nil).HTTP())
	for _, version := range []string{
		"2024-11-05", protocol.Rev20250326, protocol.Rev20250618, protocol.Rev20251125, protocol.Rev20260728,
	} {
		session := ""
		if !protocol.IsStateless(version) {
			session = r.initializeAt(t, "alice-mcp", version)
		}
		for method, members := range since {
			params := asks[method]
			own := session
			if method == "initialize" {
				if protocol.IsStateless(version) {
					continue
				}
				params, own = `"protocolVersion":"`+version+
					`","capabilities":{},"clientInfo":{"name":"t","version":"1"}`, ""
			}
			got, text := r.answered(t, version, own, method, params)
			for path, first := range members {
				if want := version >= first; got[path] != want {
					t.Errorf("RS-73 %s of %s: %s is there: %v, want %v\n%s", method, version, path, got[path], want,
						text)
				}
			}
		}
		_, list := r.answered(t, version, session, "tools/list", "")
		_, call := r.answered(t, version, session, "tools/call", `"name":"array","arguments":{}`)
		if has := strings.Contains(list, `"type":"array"`) &&
			strings.Contains(call, `"structuredContent":[1]`); has != protocol.IsStateless(version) {
			t.Errorf("RS-73 structured content that is not an object, %s: got %v\n%s\n%s", version, has, list, call)
		}
		if _, call = r.answered(t, version, session, "tools/call",
			`"name":"show","arguments":{}`); version >= protocol.Rev20250618 &&
			!strings.Contains(call, "12345678901234567890") {
			t.Errorf("a large number changed: %s", call)
		}
	}
}

// TestRevisionsOfNotifications: RS-73 for notifications and requests of the server, as the client
// reads them.
func TestRevisionsOfNotifications(t *testing.T) {
	r := newRig(t, nil, func(s *mcp.Server) {
		s.AddTool(&mcp.Tool{Name: "asks", InputSchema: anyObject},
			func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				_ = req.Session.NotifyProgress(ctx,
					&mcp.ProgressNotificationParams{ProgressToken: "p", Progress: 1, Message: "half"})
				_, _ = req.Session.Elicit(ctx,
					&mcp.ElicitParams{
						Message: "who?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`),
					})
				return &mcp.CallToolResult{}, nil
			})
	})
	for version, want := range map[string][]bool{
		"2024-11-05": {false, false}, protocol.Rev20250326: {true, false}, protocol.Rev20250618: {true, false},
		protocol.Rev20251125: {true, true},
	} {
		opening := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + version +
			`","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`
		p := newPipeTo(t, r, nil)
		p.send(opening)
		p.next()
		p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		p.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"asks","arguments":{}}}`)
		progress, question := p.next(), p.next()
		if !strings.Contains(progress, `"progress":1`) || !strings.Contains(question, `"message":"who?"`) {
			t.Fatalf("%s: got %s and %s", version, progress, question)
		}
		if got := []bool{
			strings.Contains(progress, "half"), strings.Contains(question, `"mode"`)}; !slices.Equal(got, want) {
			t.Errorf("RS-73 %s: got %v, want %v: %s %s", version, got, want, progress, question)
		}
	}
}
