//lint:file-ignore SA1019 sampling and roots are part of the revisions before 2026-07-28 (SEP-2577)

package gosdk

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// names returns the names of the tools in a list, in order.
func (r reply) names(t *testing.T) (out []string, cursor string) {
	t.Helper()
	raw := r.text[strings.LastIndex(r.text, `{"jsonrpc"`):]
	var m struct {
		Result struct {
			NextCursor string
			Tools      []struct{ Name string }
		}
	}
	if err := json.NewDecoder(strings.NewReader(raw)).Decode(&m); err != nil {
		t.Fatal(err)
	}
	for _, tool := range m.Result.Tools {
		out = append(out, tool.Name)
	}
	return out, m.Result.NextCursor
}

func (r *rig) modern(t *testing.T, token, method, name, params string) reply {
	t.Helper()
	headers := hdr("Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method)
	if name != "" {
		headers["Mcp-Name"] = []string{name}
	}
	return r.ask(t, token, ask{body: modern(method, params), headers: headers})
}

func opening(version, client string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + version +
		`","capabilities":{},"clientInfo":{"name":"` + client + `","version":"1"}}}`
}

// TestCore checks features that the SDK provides, behind the guard and the adapter.
func TestCore(t *testing.T) {
	r := newRig(t, nil, func(s *mcp.Server) {
		for _, name := range []string{"z", "b", "y"} {
			mcp.AddTool(s, &mcp.Tool{Name: name}, okTyped)
		}
	})
	session := r.initialize(t, "alice-mcp-deep")
	inSession := func(body string) reply {
		return r.ask(t, "alice-mcp-deep", ask{body: body, headers: hdr("Mcp-Session-Id", session)})
	}
	call := func(name, more string) string {
		return `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"` + name + `","arguments":{}` + more +
			`}}`
	}
	t.Run("RS-55 lists have one order", func(t *testing.T) {
		want := []string{"b", "open", "secret", "y", "z"}
		for range 5 {
			a, _ := r.modern(t, "alice-mcp-deep", "tools/list", "", "").names(t)
			b, _ := inSession(listTools).names(t)
			if !slices.Equal(a, want) || !slices.Equal(b, want) {
				t.Fatalf("got %v and %v, want %v", a, b, want)
			}
		}
	})
	t.Run("RS-101 RS-107 a request is answered by JSON or an event stream, which ends with the answer",
		func(t *testing.T) {
			for _, got := range []reply{
				r.modern(t, "alice-mcp", "tools/call", "open", `"name":"open","arguments":{}`),
				inSession(call("open", "")),
			} {
				kind := got.header.Get("Content-Type")
				if got.status != 200 || kind != "text/event-stream" && kind != "application/json" ||
					!strings.Contains(got.text, `"id":3,"result"`) {
					t.Errorf("got %d %s %s", got.status, kind, got.text)
				}
			}
		})
	t.Run("RS-71 initialize tells what the server is and has", func(t *testing.T) {
		got := r.ask(t, "alice-mcp", ask{body: opening("2025-11-25", "t")})
		if !strings.Contains(got.text, `"serverInfo":{"name":"test","version":"1"}`) ||
			!strings.Contains(got.text, `"tools":{`) || strings.Contains(got.text, `"prompts"`) {
			t.Errorf("got %s", got.text)
		}
	})
	t.Run("RS-139 a request that does not name its client", func(t *testing.T) {
		if strings.Contains(modernMeta, "clientInfo") {
			t.Fatal("the request names it")
		}
		if got := r.modern(t, "alice-mcp", "tools/list", "", ""); got.status != 200 || got.code != 0 {
			t.Errorf("got %d %s", got.status, got.text)
		}
	})
	t.Run("RS-52 what a client calls itself opens nothing", func(t *testing.T) {
		for _, name := range []string{"t", "test", "deep", "admin"} {
			meta := strings.Replace(modern("tools/call", `"name":"secret","arguments":{}`), `"_meta":{`,
				`"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"`+name+`","version":"1"},`, 1)
			got := r.ask(t, "alice-mcp",
				ask{body: meta,
					headers: hdr("Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name",
						"secret")})
			if got.status != http.StatusForbidden {
				t.Errorf("%s: got %d %s", name, got.status, got.text)
			}
			opened := r.ask(t, "alice-mcp", ask{body: opening("2025-11-25", name)}).header.Get("Mcp-Session-Id")
			if got := r.ask(t, "alice-mcp",
				ask{body: call("secret", ""),
					headers: hdr("Mcp-Session-Id", opened)}); got.status != http.StatusForbidden {
				t.Errorf("%s in a session: got %d %s", name, got.status, got.text)
			}
		}
	})
	t.Run("RS-177 trace context is accepted", func(t *testing.T) {
		const trace = `"_meta":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tracestate":"a=b","baggage":"c=d",`
		body := strings.Replace(modern("tools/call", `"name":"open","arguments":{}`), `"_meta":{`, trace, 1)
		if got := r.ask(t, "alice-mcp",
			ask{body: body,
				headers: hdr("Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name",
					"open")}); got.status != 200 || got.code != 0 {
			t.Errorf("got %d %s", got.status, got.text)
		}
	})
	t.Run("CL-52 a session has no use for the headers and members of 2026-07-28", func(t *testing.T) {
		const later = `,"_meta":{"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"debug","logLevel":"debug"}`
		got := r.ask(t, "alice-mcp-deep",
			ask{body: call("open", later),
				headers: hdr("Mcp-Session-Id", session, "Mcp-Method", "tools/call", "Mcp-Name", "open",
					"Mcp-Param-Region", "eu")})
		if got.status != 200 || !strings.Contains(got.text, "alice mcp deep") {
			t.Errorf("got %d %s", got.status, got.text)
		}
	})
	t.Run("RS-104 RS-105 RS-106 GET is a stream, and has no answers of other requests", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), wait.Bound)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL+"/mcp", nil)
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range map[string]string{
			"Accept": "text/event-stream", "Authorization": "Bearer alice-mcp-deep", "Mcp-Session-Id": session,
		} {
			req.Header.Set(k, v)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("got %d %v", resp.StatusCode, resp.Header)
		}
		if got := inSession(call("open", "")); !strings.Contains(got.text, "alice mcp deep") {
			t.Errorf("the stream of the request: got %s", got.text)
		}
		mcp.AddTool(r.adapter.server, &mcp.Tool{Name: "later"}, okTyped) // the last event of the stream
		for lines := bufio.NewScanner(resp.Body); !strings.Contains(lines.Text(), "tools/list_changed"); {
			if !lines.Scan() {
				t.Fatalf("the stream ended: %v", lines.Err())
			}
			if strings.Contains(lines.Text(), `"result"`) {
				t.Errorf("got %s", lines.Text())
			}
		}
	})
}

// TestPages: RS-58 all pages of a list have the same cache settings.
func TestPages(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "t", Version: "1"}, &mcp.ServerOptions{PageSize: 1})
	for _, name := range []string{"a", "b", "c"} {
		mcp.AddTool(s, &mcp.Tool{Name: name}, okTyped)
	}
	r := newRig(t, nil)
	r.Config.Handler = r.guard.Handler(New(r.guard, s, nil).HTTP())
	params, seen := "", []string{}
	for range 3 {
		got := r.modern(t, "alice-mcp", "tools/list", "", params)
		names, cursor := got.names(t)
		if !strings.Contains(got.text, `"cacheScope":"private"`) || len(names) != 1 {
			t.Errorf("got %s", got.text)
		}
		seen, params = append(seen, names...), `"cursor":"`+cursor+`"`
	}
	if !slices.Equal(seen, []string{"a", "b", "c"}) {
		t.Errorf("got %v", seen)
	}
}

// TestUnknownVersion: RS-123 RS-145 a request without a known version is of 2025-03-26, the
// revision with batches.
func TestUnknownVersion(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "t", Version: "1"},
		&mcp.ServerOptions{GetSessionID: func() string { return "" }})
	mcp.AddTool(s, &mcp.Tool{Name: "open"}, okTyped)
	r := newRig(t, nil)
	r.Config.Handler = r.guard.Handler(New(r.guard, s, nil).HTTP())
	r.ask(t, "alice-mcp", ask{body: opening("2025-06-18", "t")})
	if got := r.ask(t, "alice-mcp", ask{body: `[` + listTools + `]`}); got.status != 200 ||
		!strings.Contains(got.text, `"open"`) {
		t.Errorf("RS-123: got %d %s", got.status, got.text)
	}
	if got := r.ask(t, "alice-mcp",
		ask{body: `[` + listTools + `]`, headers: hdr("Mcp-Protocol-Version", "2025-06-18")}); got.status != 400 {
		t.Errorf("RS-121 with the version: got %d %s", got.status, got.text)
	}
}

// TestUndeclared: RS-141 RS-180 a client is not asked for something that it did not declare.
func TestUndeclared(t *testing.T) {
	questions := map[string]mcp.InputRequest{
		"form":     &mcp.ElicitParams{Message: "name?", RequestedSchema: anyObject},
		"link":     &mcp.ElicitParams{Mode: "url", URL: "https://example.com/", Message: "look"},
		"sampling": &mcp.CreateMessageParams{MaxTokens: 1},
		"roots":    &mcp.ListRootsParams{},
	}
	r := newRig(t, nil, func(s *mcp.Server) {
		for name, q := range questions {
			s.AddTool(&mcp.Tool{Name: name, InputSchema: anyObject},
				func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": q}}, nil
				})
		}
	})
	for _, tt := range []struct{ name, tool, capabilities, required string }{
		{"RS-141 RS-180 nothing is declared", "form", `{}`, `{"elicitation":{"form":{}}}`},
		{"RS-180 a form, where no mode is named", "form", `{"elicitation":{}}`, ""},
		{"RS-180 a form", "form", `{"elicitation":{"form":{}}}`, ""},
		{"RS-141 links are no forms", "form", `{"elicitation":{"url":{}}}`, `{"elicitation":{"form":{}}}`},
		{"RS-141 forms are no links", "link", `{"elicitation":{}}`, `{"elicitation":{"url":{}}}`},
		{"RS-180 a link", "link", `{"elicitation":{"url":{}}}`, ""},
		{"RS-141 sampling", "sampling", `{"elicitation":{}}`, `{"sampling":{}}`},
		{"RS-180 sampling", "sampling", `{"sampling":{}}`, ""},
		{"RS-141 roots", "roots", `{"sampling":{}}`, `{"roots":{}}`},
		{"RS-180 roots", "roots", `{"roots":{}}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := strings.Replace(modern("tools/call", `"name":"`+tt.tool+`","arguments":{}`),
				`clientCapabilities":{}`, `clientCapabilities":`+tt.capabilities, 1)
			got := r.ask(t, "alice-mcp-deep",
				ask{body: body,
					headers: hdr("Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name",
						tt.tool)})
			if tt.required == "" {
				if got.status != 200 || !strings.Contains(got.text, `"resultType":"input_required"`) {
					t.Errorf("got %d %s", got.status, got.text)
				}
				return
			}
			if got.status != 400 || got.code != -32021 ||
				!strings.Contains(got.text, `"data":{"requiredCapabilities":`+tt.required+`}`) {
				t.Errorf("got %d %s", got.status, got.text)
			}
		})
	}
}

// TestOutputSchema: RS-126 a result that does not match its schema is not sent.
func TestOutputSchema(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	r := newRig(t, nil, func(s *mcp.Server) {
		for name, result := range map[string]*mcp.CallToolResult{
			"fits raw":  {StructuredContent: map[string]any{"n": 1}},
			"unfit raw": {StructuredContent: map[string]any{"n": "no number"}},
			"fails":     {IsError: true},
			"nothing":   {Content: []mcp.Content{&mcp.TextContent{Text: "no content"}}},
		} {
			s.AddTool(&mcp.Tool{Name: name, InputSchema: anyObject, OutputSchema: schema},
				func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return result, nil })
		}
		for name, value := range map[string]any{"fits": 1, "unfit": "no number"} {
			mcp.AddTool(s, &mcp.Tool{Name: name, OutputSchema: schema},
				func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
					return nil, map[string]any{"n": value}, nil
				})
		}
	})
	for name, fits := range map[string]bool{"fits": true, "unfit": false} {
		got := r.modern(t, "alice-mcp-deep", "tools/call", name, `"name":"`+name+`","arguments":{}`)
		if (got.code == 0) != fits || strings.Contains(got.text, "structuredContent") != fits {
			t.Errorf("RS-126 %s: got %d %s", name, got.status, got.text)
		}
	}
	session := r.initializeAt(t, "alice-mcp-deep", "2025-03-26")
	for name, codes := range map[string]struct{ newest, older int64 }{ // older is 2025-03-26, without such schemas
		"fits raw": {0, 0}, "unfit raw": {-32603, 0}, "fails": {0, 0}, "nothing": {-32603, 0},
	} {
		body := `"name":"` + name + `","arguments":{}`
		got := r.modern(t, "alice-mcp-deep", "tools/call", name, body)
		if got.code != codes.newest || codes.newest != 0 && strings.Contains(got.text, "no ") {
			t.Errorf("RS-126 %s: got %d %s", name, got.status, got.text)
		}
		old := r.ask(t, "alice-mcp-deep", ask{headers: hdr("Mcp-Session-Id", session),
			body: `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{` + body + `}}`})
		if old.code != codes.older {
			t.Errorf("RS-126 %s at 2025-03-26: got %d %s", name, old.status, old.text)
		}
	}
}

// TestAnnotations: RS-156 a tool whose annotations no client can follow is not added.
func TestAnnotations(t *testing.T) {
	for name, properties := range map[string]string{
		"RS-156 a number":            `"n":{"type":"number","x-mcp-header":"N"}`,
		"RS-156 twice, but for case": `"a":{"type":"string","x-mcp-header":"N"},"b":{"type":"string","x-mcp-header":"n"}`,
		"RS-156 no token":            `"a":{"type":"string","x-mcp-header":"N m"}`,
		"RS-156 empty":               `"a":{"type":"string","x-mcp-header":""}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := mcp.NewServer(&mcp.Implementation{Name: "t", Version: "1"}, nil)
			defer func() {
				if recover() == nil {
					t.Error("it was added")
				}
			}()
			s.AddTool(&mcp.Tool{
				Name: "x", InputSchema: json.RawMessage(`{"type":"object","properties":{` + properties + `}}`)}, okTool)
		})
	}
}
