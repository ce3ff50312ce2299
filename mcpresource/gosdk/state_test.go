package gosdk

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// asking adds a tool, prompt and resource that ask for a name, and show the returned state.
func asking(s *mcp.Server) {
	input := mcp.InputRequestMap{
		"name": &mcp.ElicitParams{Message: "name?", RequestedSchema: json.RawMessage(anyObject)},
	}
	s.AddTool(&mcp.Tool{Name: "asks", InputSchema: anyObject},
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if r.Params.RequestState != "" {
				return &mcp.CallToolResult{
					Content: []mcp.Content{&mcp.TextContent{Text: "back: " + r.Params.RequestState}}}, nil
			}
			return &mcp.CallToolResult{InputRequests: input, RequestState: "step one"}, nil
		})
	s.AddTool(&mcp.Tool{Name: "other", InputSchema: anyObject}, okTool)
	s.AddPrompt(&mcp.Prompt{Name: "asks"},
		func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			if r.Params.RequestState != "" {
				return &mcp.GetPromptResult{Description: "back: " + r.Params.RequestState}, nil
			}
			return &mcp.GetPromptResult{InputRequests: input, RequestState: "step one"}, nil
		})
	s.AddResource(&mcp.Resource{URI: "x://asks", Name: "asks"},
		func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			if r.Params.RequestState != "" {
				return &mcp.ReadResourceResult{
					Contents: []*mcp.ResourceContents{{URI: "x://asks", Text: "back: " + r.Params.RequestState}}}, nil
			}
			return &mcp.ReadResourceResult{InputRequests: input, RequestState: "step one"}, nil
		})
}

func (r *rig) retry(t *testing.T, token, method, name, params, state string) reply {
	t.Helper()
	if state != "" {
		params += `,"requestState":"` + state + `","inputResponses":{"name":{"action":"accept","content":{"name":"x"}}}`
	}
	body := strings.Replace(modern(method, params), `"io.modelcontextprotocol/clientCapabilities":{}`,
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}`, 1)
	return r.ask(t, token,
		ask{body: body, headers: hdr("Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method, "Mcp-Name", name)})
}

func stateOf(t *testing.T, r reply) string {
	t.Helper()
	_, after, ok := strings.Cut(r.text, `"requestState":"`)
	state, _, _ := strings.Cut(after, `"`)
	if !ok || strings.Contains(r.text, "step one") {
		t.Fatalf("no state, or one that can be read: %s", r.text)
	}
	return state
}

func TestRequestState(t *testing.T) {
	r := newRig(t, nil, asking)
	const args = `"name":"asks","arguments":{"a":1,"b":{"c":12345678901234567890}}`
	state := stateOf(t, r.retry(t, "alice-mcp", "tools/call", "asks", args, ""))
	other := "A"
	if state[20] == 'A' {
		other = "B"
	}
	for _, tt := range []struct{ name, token, tool, params, state, want string }{
		{"RS-178 RS-181 it comes back to the handler as it was", "alice-mcp", "asks", args, state, "back: step one"},
		{"RS-182 arguments in another order are the same", "alice-mcp", "asks",
			`"arguments":{ "b":{"c":12345678901234567890},"a":1},"name":"asks"`, state, "back: step one"},
		{"RS-185 with another token of the same caller", "alice-mcp-deep", "asks", args, state, "back: step one"},
		{"RS-181 a byte was changed", "alice-mcp", "asks", args, state[:20] + other + state[21:], "-32602"},
		{"RS-181 something was added", "alice-mcp", "asks", args, state + "AAAA", "-32602"},
		{"RS-181 it was made up", "alice-mcp", "asks", args, "c3RlcCBvbmU", "-32602"},
		{"RS-182 RS-173 SP-15 another person's", "bob-mcp", "asks", args, state, "-32602"},
		{"RS-182 for another tool", "alice-mcp", "other", strings.Replace(args, "asks", "other", 1), state, "-32602"},
		{"RS-182 for other arguments", "alice-mcp", "asks", strings.Replace(args, "90}", "91}", 1), state, "-32602"},
		{"RS-182 for arguments that a decoder may see as others", "alice-mcp", "asks",
			strings.Replace(args, `"b":`, `"b":{"d":1},"b":`, 1), state, "-32602"},
		{"RS-185 without the scope", "alice-x", "asks", args, state, "insufficient_scope"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := r.retry(t, tt.token, "tools/call", tt.tool, tt.params, tt.state)
			if !strings.Contains(got.text, tt.want) ||
				tt.want[0] == '-' && (got.status != 400 || strings.Contains(got.text, "step one")) {
				t.Errorf("got %d %s, want %s", got.status, got.text, tt.want)
			}
		})
	}
	t.Run("RS-178 prompts and resources likewise", func(t *testing.T) {
		for method, p := range map[string][2]string{
			"prompts/get": {"asks", `"name":"asks"`}, "resources/read": {"x://asks", `"uri":"x://asks"`},
		} {
			state := stateOf(t, r.retry(t, "alice-mcp", method, p[0], p[1], ""))
			if got := r.retry(t, "alice-mcp", method, p[0], p[1], state); !strings.Contains(got.text,
				"back: step one") {
				t.Errorf("%s: got %s", method, got.text)
			}
			if got := r.retry(t, "bob-mcp", method, p[0], p[1], state); got.code != -32602 {
				t.Errorf("%s: another person: got %s", method, got.text)
			}
		}
	})
	t.Run("RS-182 for another method", func(t *testing.T) {
		state := stateOf(t, r.retry(t, "alice-mcp", "tools/call", "asks", `"name":"asks"`, ""))
		if got := r.retry(t, "alice-mcp", "prompts/get", "asks", `"name":"asks"`, state); got.code != -32602 {
			t.Errorf("got %s", got.text)
		}
	})
	t.Run("RS-182 it ends", func(t *testing.T) {
		r := newRig(t, &Options{StateLife: time.Nanosecond}, asking)
		if got := r.retry(t, "alice-mcp", "tools/call", "asks", args,
			stateOf(t, r.retry(t, "alice-mcp", "tools/call", "asks", args, ""))); got.code != -32602 {
			t.Errorf("got %s", got.text)
		}
	})
	t.Run("RS-140 any replica with the key can go on, one without cannot", func(t *testing.T) {
		sealer, err := mcpresource.NewSealer([]byte(strings.Repeat("k", 32)))
		if err != nil {
			t.Fatal(err)
		}
		// Both have the same caller, but different resources.
		one, two := newRig(t, &Options{State: sealer}, asking), newRig(t, &Options{State: sealer}, asking)
		state := stateOf(t, one.retry(t, "alice-mcp", "tools/call", "asks", args, ""))
		if got := two.retry(t, "alice-mcp", "tools/call", "asks", args, state); !strings.Contains(got.text,
			"back: step one") {
			t.Errorf("got %s", got.text)
		}
		if got := r.retry(t, "alice-mcp", "tools/call", "asks", args, state); got.code != -32602 {
			t.Errorf("another key: got %s", got.text)
		}
	})
}

// TestRequestStateOfOlderClients: for an older client the SDK asks during the call, and the state
// is never sent.
func TestRequestStateOfOlderClients(t *testing.T) {
	r := newRig(t, nil, asking)
	client := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "x"}}, nil
		},
	})
	session, err := client.Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: r.URL + "/mcp", HTTPClient: r.client("alice-mcp")},
		&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	got, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "asks", Arguments: map[string]any{}})
	if err != nil || got.RequestState != "" || got.Content[0].(*mcp.TextContent).Text != "back: step one" {
		t.Errorf("got %+v %v", got, err)
	}
}
