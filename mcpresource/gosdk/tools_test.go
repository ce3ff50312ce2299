package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

func okTool(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "ran"}}}, nil
}

func okTyped(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "ran"}}}, nil, nil
}

func legacyMissing(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	return nil, &jsonrpc.Error{Code: -32002, Message: "no such thing"}
}

var anyObject = json.RawMessage(`{"type":"object"}`)

// raw adds a tool with Server.AddTool, without checks by the SDK.
func raw(name, schema string, h mcp.ToolHandler) func(*mcp.Server) {
	return func(s *mcp.Server) {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(schema)}, h)
	}
}

// call calls a tool in 2026-07-28 and returns the whole response.
func (r *rig) call(t *testing.T, token, name, args string) reply {
	t.Helper()
	return r.ask(t, token, ask{body: modern("tools/call", `"name":"`+name+`","arguments":`+args),
		headers: hdr("Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", name)})
}

func TestInput(t *testing.T) {
	schema := `{"type":"object","properties":{"n":{"type":"integer","minimum":1},"d":{"type":"string","default":"x"}},"required":["n"],"additionalProperties":false}`
	with := func(o *Options) *rig {
		return newRig(t, o, raw("raw", schema, okTool),
			raw("remote", `{"type":"object","$ref":"http://127.0.0.1:1/schema"}`, okTool),
			raw("draft-04", `{"type":"object","$schema":"http://json-schema.org/draft-04/schema#"}`, okTool),
			raw("draft-07", `{"type":"object","$schema":"http://json-schema.org/draft-07/schema#"}`, okTool),
			raw("2020-12", `{"type":"object","$schema":"https://json-schema.org/draft/2020-12/schema"}`, okTool))
	}
	r := with(nil)
	for _, tt := range []struct{ name, args, want string }{
		{"RS-192 arguments that fit", `{"n":1}`, "ran"},
		{"RS-192 of another type", `{"n":"1"}`, "isError"},
		{"RS-192 out of range", `{"n":0}`, "isError"},
		{"RS-192 missing", `{}`, "isError"},
		{"RS-192 with one too many", `{"n":1,"x":2}`, "isError"},
		{"RS-192 RS-103 the same key twice", `{"n":2,"n":1}`, "isError"},
		{"RS-192 colons and quotes in text are no keys", `{"n":1,"d":"a:\"b\\\":"}`, "ran"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := r.call(t, "alice-mcp", "raw", tt.args).text; !strings.Contains(got, tt.want) ||
				tt.want != "ran" && strings.Contains(got, "ran") {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	t.Run("RS-134 a dialect that is not known is named, and the tool does not run", func(t *testing.T) {
		got := r.call(t, "alice-mcp", "draft-04", `{}`).text
		if !strings.Contains(got, "draft-04") || !strings.Contains(got, "supported versions") ||
			strings.Contains(got, "ran") {
			t.Errorf("got %s", got)
		}
		for _, known := range []string{"draft-07", "2020-12"} {
			if got := r.call(t, "alice-mcp", known, `{}`).text; !strings.Contains(got, "ran") {
				t.Errorf("%s: got %s", known, got)
			}
		}
	})
	t.Run("RS-172 a schema that points elsewhere is never fetched, and said to be of no use",
		func(t *testing.T) {
			if got := r.call(t, "alice-mcp", "remote", `{}`); got.code != -32603 ||
				!strings.Contains(got.text, "input schema") {
				t.Errorf("got %s", got.text)
			}
		})
	t.Run("RS-77 up to 2025-06-18 bad input is a protocol error, then a result", func(t *testing.T) {
		body := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"raw","arguments":{"n":0}}}`
		for version, want := range map[string]int64{"2025-03-26": -32602, "2025-06-18": -32602, "2025-11-25": 0} {
			session := r.initializeAt(t, "alice-mcp", version)
			got := r.ask(t, "alice-mcp", ask{body: body, headers: hdr("Mcp-Session-Id", session)})
			if got.code != want || want == 0 && !strings.Contains(got.text, `"isError":true`) {
				t.Errorf("%s: got %s", version, got.text)
			}
		}
	})
	t.Run("RS-192 UncheckedInput leaves it to the tool", func(t *testing.T) {
		if got := with(&Options{UncheckedInput: true}).call(t, "alice-mcp", "raw",
			`{"n":0}`).text; !strings.Contains(got, "ran") {
			t.Errorf("got %s", got)
		}
	})
}

func TestOutput(t *testing.T) {
	content := []mcp.Content{
		&mcp.TextContent{
			Text: "a\x1b[31mred\x1b[0m\x1b]0;title\x07\x1b]52;c;cm0gLXJm\x1b\\ b\u009b2Jc\rd\x00e\x7f\tf\ng\u0085\u061c",
		},
		&mcp.ResourceLink{URI: "java\tscript:alert(1)", Name: "x"},
		&mcp.ResourceLink{URI: "https://example.com/a", Name: "fi\x1b[2Kne"},
		&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "data:text/html,x", Text: "y"}},
	}
	shared := &mcp.CallToolResult{
		Content: content, StructuredContent: map[string]any{"k": "v\x1b[31m", "n": json.Number("12345678901234567890")},
	}
	tool := raw("show", string(anyObject),
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return shared, nil })
	read := func(r *rig) *mcp.CallToolResult {
		text := r.call(t, "alice-mcp", "show", `{}`).text
		var m struct{ Result *mcp.CallToolResult }
		if err := json.Unmarshal([]byte(strings.TrimSpace(text[strings.Index(text, "data: {")+6:])), &m); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		return m.Result
	}
	t.Run("RS-192 escape sequences, control characters and dangerous links go", func(t *testing.T) {
		got := read(newRig(t, nil, tool))
		if text := got.Content[0].(*mcp.TextContent).Text; text != "ared bcde\tf\ng\u061c" {
			t.Errorf("got %q", text)
		}
		for _, i := range []int{1, 3} {
			if c, ok := got.Content[i].(*mcp.TextContent); !ok || !strings.Contains(c.Text, "not permitted") {
				t.Errorf("got %#v", got.Content[i])
			}
		}
		if c := got.Content[2].(*mcp.ResourceLink); c.Name != "fine" {
			t.Errorf("got %q", c.Name)
		}
		if b, _ := json.Marshal(got.StructuredContent); !strings.Contains(string(b), `"k":"v"`) {
			t.Errorf("got %s", b)
		}
		if shared.Content[0].(*mcp.TextContent).Text[1] != 0x1b {
			t.Error("the tool's own result was changed")
		}
	})
	t.Run("RS-192 RawOutput passes it on", func(t *testing.T) {
		if got := read(newRig(t, &Options{RawOutput: true}, tool)); !strings.Contains(
			got.Content[0].(*mcp.TextContent).Text, "\x1b[31m",
		) {
			t.Errorf("got %#v", got.Content[0])
		}
	})
	t.Run("RS-192 only the schemes that are listed", func(t *testing.T) {
		if _, ok := read(newRig(t, &Options{URISchemes: []string{"ftp"}}, tool)).Content[2].(*mcp.TextContent); !ok {
			t.Error("https was let pass")
		}
	})
	t.Run("RS-192 a result that is too large", func(t *testing.T) {
		if got := read(newRig(t, &Options{MaxResult: 20}, tool)); !got.IsError || len(got.Content) != 1 {
			t.Errorf("got %#v", got)
		}
	})
	t.Run("RS-73 older revisions get words for content they do not know", func(t *testing.T) {
		sound := raw("sound", string(anyObject),
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{
					Content: []mcp.Content{
						&mcp.ResourceLink{URI: "x://y", Name: "why"},
						&mcp.AudioContent{Data: []byte("x"), MIMEType: "audio/wav"}}}, nil
			})
		r := newRig(t, nil, sound)
		for version, want := range map[string][2]bool{
			"2024-11-05": {false, false}, "2025-03-26": {false, true}, "2025-06-18": {true, true},
		} {
			got := r.ask(t, "alice-mcp",
				ask{body: `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"sound","arguments":{}}}`,
					headers: hdr("Mcp-Session-Id", r.initializeAt(t, "alice-mcp", version))})
			if link, audio := strings.Contains(got.text, `"resource_link"`),
				strings.Contains(got.text, `"audio"`); link != want[0] || audio != want[1] ||
				!strings.Contains(got.text, "x://y") {
				t.Errorf("%s: got %s", version, got.text)
			}
		}
	})
}

func TestToolLimits(t *testing.T) {
	t.Run("RS-76 a tool that takes too long is answered for, though it does not stop", func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		r := newRig(t, &Options{ToolTimeouts: map[string]time.Duration{"slow": time.Millisecond}, MaxCalls: 1},
			raw("slow", string(anyObject), func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				<-release
				return &mcp.CallToolResult{}, nil
			}))
		if got := r.call(t, "alice-mcp", "slow", `{}`); !strings.Contains(got.text, "took longer") {
			t.Errorf("got %s", got.text)
		}
		if got := r.call(t, "alice-mcp", "open", `{}`); got.code != -32000 || !strings.Contains(got.text, "limited") {
			t.Errorf("RS-189: what runs still counts: got %s", got.text)
		}
		if got := r.call(t, "bob-mcp", "open", `{}`); got.code != 0 {
			t.Errorf("RS-197: and for its caller alone: got %s", got.text)
		}
	})
	t.Run("RS-76 a tool sees its deadline", func(t *testing.T) {
		r := newRig(t, nil,
			raw("when", string(anyObject),
				func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					if _, ok := ctx.Deadline(); !ok {
						return nil, errors.New("no deadline")
					}
					return &mcp.CallToolResult{}, nil
				}))
		if got := r.call(t, "alice-mcp", "when", `{}`); got.code != 0 {
			t.Errorf("got %s", got.text)
		}
	})
	t.Run("RS-76 a client that is asked and says nothing", func(t *testing.T) {
		r := newRig(t, &Options{AskTimeout: 20 * time.Millisecond},
			raw("ask", string(anyObject),
				func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					_, err := req.Session.Elicit(ctx,
						&mcp.ElicitParams{Message: "?", RequestedSchema: json.RawMessage(anyObject)})
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("got %v", err)
					}
					return &mcp.CallToolResult{}, nil
				}))
		release := make(chan struct{})
		silent := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"},
			&mcp.ClientOptions{
				ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					<-release
					return nil, errors.New("too late")
				}})
		session, err := silent.Connect(t.Context(),
			&mcp.StreamableClientTransport{Endpoint: r.URL + "/mcp", HTTPClient: r.client("alice-mcp")},
			&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		defer close(release)
		if _, err := session.CallTool(t.Context(),
			&mcp.CallToolParams{Name: "ask", Arguments: map[string]any{}}); err != nil {
			t.Error(err)
		}
	})
	t.Run("RS-196 a panic ends one call and not the process", func(t *testing.T) {
		boom := func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { panic("secret") }
		for _, timeout := range []time.Duration{0, -1} {
			r := newRig(t, &Options{ToolTimeout: timeout}, raw("boom", string(anyObject), boom))
			if got := r.call(t, "alice-mcp", "boom", `{}`); got.code != -32603 || strings.Contains(got.text, "secret") {
				t.Errorf("got %s", got.text)
			}
		}
	})
}

func TestAudit(t *testing.T) {
	var mu sync.Mutex
	var calls []mcpresource.CallEvent
	record := func(c *mcpresource.Config) {
		c.Calls = func(_ context.Context, e mcpresource.CallEvent) {
			mu.Lock()
			defer mu.Unlock()
			calls = append(calls, e)
		}
	}
	failing := raw("fails", string(anyObject),
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return nil, errors.New("broken")
		})
	r := newRigOf(t, record, nil, failing)
	r.call(t, "alice-mcp", "open", `{"unknown":"value"}`)
	r.call(t, "alice-mcp-deep", "open", `{}`)
	r.call(t, "alice-mcp", "fails", `{}`)
	// rejected by the guard
	r.call(t, "alice-mcp", "secret", `{}`)
	// rejected by the SDK: no Mcp-Method
	r.ask(t, "alice-mcp", ask{body: modern("tools/list", ""), headers: hdr("Mcp-Protocol-Version", "2026-07-28")})
	mu.Lock()
	defer mu.Unlock()
	// SP-07: each call is reported once, with user, application and operation.
	for i, want := range []struct{ method, name, outcome string }{
		{"tools/call", "open", "invalid_input"}, {"tools/call", "open", "ok"}, {"tools/call", "fails", "error"},
		{"tools/call", "secret", "insufficient_scope"}, {"tools/list", "", "error"},
	} {
		if i >= len(calls) {
			t.Fatalf("SP-07: got %d events, want %v too", len(calls), want)
		}
		c := calls[i]
		if c.Method != want.method || c.Name != want.name || string(c.Outcome) != want.outcome ||
			c.Principal.Subject != "alice" || c.Principal.ClientID != "app" || c.Duration <= 0 || c.Time.IsZero() ||
			c.Arguments != nil {
			t.Errorf("SP-07: got %+v, want %v", c, want)
		}
	}
	if len(calls) != 5 {
		t.Errorf("got %d events: looking up a tool must not be one", len(calls))
	}
}

// TestMergedArguments: encoding/json merges two objects with the same key, and validation would
// only see the second.
func TestMergedArguments(t *testing.T) {
	r := newRig(t, nil,
		raw("show", `{"type":"object","properties":{"o":{"type":"object","properties":{"x":{"const":"ok"}}}}}`, okTool))
	for args, want := range map[string]string{
		`{"o":{"x":"bad"},"o":{}}`: "isError", `{"o":{"x":"ok","y":[{"x":1},{"x":2}]}}`: "ran",
	} {
		t.Run("RS-192 "+args, func(t *testing.T) {
			if got := r.call(t, "alice-mcp", "show", args).text; !strings.Contains(got, want) {
				t.Errorf("got %s", got)
			}
		})
	}
}

// TestPolicyPanics: the SDK runs the middleware outside the recovery of net/http.
func TestPolicyPanics(t *testing.T) {
	on := ""
	r := newRigOf(t, func(c *mcpresource.Config) {
		c.Policy = &mcpresource.Rules{
			Base: []string{"mcp"},
			Refine: func(op mcpresource.Operation, need mcpresource.Requirement) mcpresource.Requirement {
				if op.Method == on {
					_ = op.Arguments[0] // a list checks a tool without arguments
				}
				return need
			}}
	}, &Options{MaxCalls: 1})
	on = "tools/call"
	for range 2 {
		got := r.ask(t, "alice-mcp",
			ask{body: modern("tools/list", ``),
				headers: hdr("Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list")})
		if got.code != -32603 || strings.Contains(got.text, "index") {
			t.Errorf("RS-192 got %s", got.text)
		}
	}
	if got := r.call(t, "alice-mcp", "open", `{}`); !strings.Contains(got.text, "alice") {
		t.Errorf("RS-192 afterwards: got %s", got.text)
	}
}

func TestAuditOfBadInput(t *testing.T) {
	said := make(chan mcpresource.CallEvent, 20)
	r := newRigOf(t, func(c *mcpresource.Config) {
		c.Calls = func(_ context.Context, e mcpresource.CallEvent) { said <- e }
	}, nil, raw("raw", `{"type":"object","properties":{"pin":{"const":"x"}}}`, okTool))
	session := r.initializeAt(t, "alice-mcp", "2025-06-18")
	r.ask(t, "alice-mcp",
		ask{body: `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"raw","arguments":{"pin":"hunter2"}}}`,
			headers: hdr("Mcp-Session-Id", session)})
	for e := range said {
		if e.Method != "tools/call" {
			continue
		}
		if e.Outcome != "invalid_input" || e.Err == nil || strings.Contains(e.Err.Error(), "hunter2") {
			t.Errorf("SP-28 the audit holds arguments that nobody asked for: %+v", e)
		}
		return
	}
}

// TestOutputEverywhere: cleaning and limits apply to more than the text of tools.
func TestOutputEverywhere(t *testing.T) {
	long := strings.Repeat("x", 5000)
	prompt := func(name, description, text string) func(*mcp.Server) {
		return func(s *mcp.Server) {
			s.AddPrompt(&mcp.Prompt{Name: name},
				func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
					return &mcp.GetPromptResult{
						Description: description,
						Messages:    []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}}, nil
				})
		}
	}
	tool := func(name string, result *mcp.CallToolResult) func(*mcp.Server) {
		return raw(name, string(anyObject),
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return result, nil })
	}
	r := newRig(t, &Options{MaxResult: 1000}, prompt("long", "", long), prompt("escape", "\x1b[2Jfine", "x"),
		tool("names", &mcp.CallToolResult{StructuredContent: map[string]any{"\x1b[2Jname": 1}}),
		tool("links", &mcp.CallToolResult{Content: []mcp.Content{&mcp.ResourceLink{URI: "x://" + long, Name: "x"}}}))
	get := func(name string) string {
		return r.ask(t, "alice-mcp",
			ask{body: modern("prompts/get", `"name":"`+name+`"`),
				headers: hdr("Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "prompts/get", "Mcp-Name", name)}).text
	}
	for name, tt := range map[string]struct{ got, want string }{
		"RS-193 a prompt that is too large":       {get("long"), "5000 bytes"},
		"RS-193 what describes a prompt":          {get("escape"), `"description":"fine"`},
		"RS-192 the names in structured content":  {r.call(t, "alice-mcp", "names", `{}`).text, `{"name":1}`},
		"RS-192 links count by what they consist": {r.call(t, "alice-mcp", "links", `{}`).text, "5005 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(tt.got, tt.want) || len(tt.got) > 2000 {
				t.Errorf("got %s", tt.got)
			}
		})
	}
}
