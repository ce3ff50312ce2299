package gosdk

import (
	"context"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const drawing = "com.example/drawing"

// draws is a tool that requires an extension.
func draws(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if err := RequireExtension(req, drawing); err != nil {
		return nil, err
	}
	return okTool(context.Background(), req)
}

// TestExtensions: RS-174 extensions are declared in each request, and the error names a missing
// one.
func TestExtensions(t *testing.T) {
	has := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}}
	has.AddExtension(drawing, nil)
	s := mcp.NewServer(&mcp.Implementation{Name: "t", Version: "1"}, &mcp.ServerOptions{Capabilities: has})
	raw("draws", string(anyObject), draws)(s)
	mcp.AddTool(s, &mcp.Tool{Name: "typed"},
		func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			result, err := draws(ctx, req)
			return result, nil, err
		})
	r := newRig(t, nil)
	r.adapter = New(r.guard, s, nil)
	r.Config.Handler = r.guard.Handler(r.adapter.HTTP())
	body := func(tool, capabilities string) string {
		return strings.Replace(modern("tools/call", `"name":"`+tool+`","arguments":{}`),
			`clientCapabilities":{}`, `clientCapabilities":`+capabilities, 1)
	}
	const missing = `"data":{"requiredCapabilities":{"extensions":{"com.example/drawing":{}}}}`
	cases := []struct{ name, capabilities, want string }{
		{"RS-174 declared", `{"extensions":{"com.example/drawing":{}}}`, "ran"},
		{"RS-174 declared a request ago", `{}`, missing},
		{"RS-174 another one", `{"extensions":{"com.example/other":{}}}`, missing},
		{"RS-174 as a capability of its own", `{"com.example/drawing":{}}`, missing},
	}
	for _, tool := range []string{"draws", "typed"} {
		for _, tt := range cases {
			t.Run(tt.name+": "+tool, func(t *testing.T) {
				got := r.ask(t, "alice-mcp", ask{body: body(tool, tt.capabilities),
					headers: hdr("Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", tool)})
				if !strings.Contains(got.text, tt.want) ||
					tt.want == missing && (got.status != 400 || got.code != -32021) {
					t.Errorf("got %d %s", got.status, got.text)
				}
			})
		}
	}
	t.Run("RS-174 by stdio, where one connection lasts", func(t *testing.T) {
		p := newPipeTo(t, r, nil)
		for _, tt := range cases {
			p.send(body("draws", tt.capabilities))
			if got := p.next(); !strings.Contains(got, tt.want) {
				t.Errorf("%s: got %s", tt.name, got)
			}
		}
	})
	t.Run("RS-174 a session has what initialize declared", func(t *testing.T) {
		for capabilities, want := range map[string]string{`{}`: missing, cases[0].capabilities: "ran"} {
			opened := strings.Replace(opening("2025-11-25", "t"),
				`"capabilities":{}`, `"capabilities":`+capabilities, 1)
			id := r.ask(t, "alice-mcp", ask{body: opened}).header.Get("Mcp-Session-Id")
			got := r.ask(t, "alice-mcp", ask{headers: hdr("Mcp-Session-Id", id),
				body: `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"draws","arguments":{}}}`})
			if !strings.Contains(got.text, want) {
				t.Errorf("%s: got %s", capabilities, got.text)
			}
		}
	})
	t.Run("RS-174 the server says which it has", func(t *testing.T) {
		if got := r.modern(t, "alice-mcp", "server/discover", "", ""); !strings.Contains(got.text,
			`"extensions":{"com.example/drawing":{}}`) {
			t.Errorf("got %s", got.text)
		}
	})
}
