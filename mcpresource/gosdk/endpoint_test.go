package gosdk

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ask is one plain HTTP request with custom headers; the value "-" removes one.
type ask struct {
	method, body string
	headers      map[string][]string
}

// reply contains the parts of a response that the tests check.
type reply struct {
	status int
	code   int64 // of a JSON-RPC error, else 0
	id     string
	text   string
	header http.Header
}

func (r *rig) ask(t *testing.T, token string, a ask) reply {
	t.Helper()
	method := a.method
	if method == "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(t.Context(), method, r.URL+"/mcp", strings.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+token)
	for k, v := range a.headers {
		if k = http.CanonicalHeaderKey(k); v[0] == "-" {
			req.Header.Del(k)
			continue
		}
		req.Header[k] = v
	}
	resp, err := r.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := reply{status: resp.StatusCode, text: string(b), header: resp.Header}
	raw := out.text
	if i := strings.LastIndex(raw, "data: {"); i >= 0 {
		raw = raw[i+len("data: "):]
	}
	var m struct {
		ID    json.RawMessage
		Error struct{ Code int64 }
	}
	if json.NewDecoder(strings.NewReader(raw)).Decode(&m) == nil {
		out.code, out.id = m.Error.Code, string(m.ID)
	}
	return out
}

func hdr(pairs ...string) map[string][]string {
	h := map[string][]string{}
	for i := 0; i < len(pairs); i += 2 {
		h[pairs[i]] = append(h[pairs[i]], pairs[i+1])
	}
	return h
}

const listTools = `{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{}}`

// TestSessionEra checks requests that are invalid up to 2025-11-25, but that the SDK accepts or
// rejects in plain text.
func TestSessionEra(t *testing.T) {
	r := newRig(t, nil)
	now := r.initializeAt(t, "alice-mcp-deep", "2025-11-25")
	mid := r.initializeAt(t, "alice-mcp-deep", "2025-06-18")
	old := r.initializeAt(t, "alice-mcp-deep", "2025-03-26")
	first := r.initializeAt(t, "alice-mcp-deep", "1.0.0") // without an owner: the server answers with its latest
	batch := `[` + listTools + `,{"jsonrpc":"2.0","id":4,"method":"ping"}]`
	opening := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	for _, tt := range []struct {
		name   string
		ask    ask
		status int
		code   int64
		id     string
	}{
		{"RS-109 no session id", ask{body: listTools}, 400, -32600, "3"},
		{"RS-109 no session id, and a ping", ask{body: `{"jsonrpc":"2.0","id":"p","method":"ping"}`}, 400, -32600,
			`"p"`},
		{"RS-109 no session id on GET", ask{method: "GET"}, 400, -32600, "null"},
		{"RS-110 an unknown session", ask{body: listTools, headers: hdr("Mcp-Session-Id", "unknown")}, 404, -32000,
			"3"},
		{"RS-67 an id that is null",
			ask{body: `{"jsonrpc":"2.0","id":null,"method":"tools/list"}`, headers: hdr("Mcp-Session-Id", now)}, 400,
			-32600, "null"},
		{"RS-67 an id with a fraction",
			ask{body: `{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}`, headers: hdr("Mcp-Session-Id", now)}, 400,
			-32600, "null"},
		{"RS-74 ping", ask{body: `{"jsonrpc":"2.0","id":5,"method":"ping"}`, headers: hdr("Mcp-Session-Id", now)},
			200, 0, "5"},
		{"RS-69 tasks are absent, which is no error of HTTP",
			ask{body: `{"jsonrpc":"2.0","id":6,"method":"tasks/get","params":{"taskId":"1"}}`,
				headers: hdr("Mcp-Session-Id", now)}, 200, -32601, "6"},
		{"RS-77 an unknown tool",
			ask{body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"none"}}`,
				headers: hdr("Mcp-Session-Id", now)}, 200, -32602, "7"},
		{"RS-78 a missing resource",
			ask{body: `{"jsonrpc":"2.0","id":8,"method":"resources/read","params":{"uri":"x://y"}}`,
				headers: hdr("Mcp-Session-Id", now)}, 200, -32002, "8"},
		{"RS-121 an array in a session of 2025-06-18",
			ask{body: batch, headers: hdr("Mcp-Session-Id", mid, "Mcp-Protocol-Version", "2025-06-18")}, 400, -32600,
			"null"},
		{"RS-121 an array in a session of 2025-11-25 that hides its version",
			ask{body: batch, headers: hdr("Mcp-Session-Id", now)}, 400, -32600, "null"},
		{"RS-117 RS-120 an array in a session of 2025-03-26", ask{body: batch, headers: hdr("Mcp-Session-Id", old)},
			200, 0, "-"},
		{"RS-118 initialize in an array", ask{body: `[` + opening + `]`}, 400, -32600, "null"},
		{"RS-118 initialize in an array, in a session",
			ask{body: `[` + listTools + `,` + opening + `]`, headers: hdr("Mcp-Session-Id", old)}, 400, -32600, "null"},
		{"RS-119 requests and responses in one array",
			ask{body: `[` + listTools + `,{"jsonrpc":"2.0","id":9,"result":{}}]`,
				headers: hdr("Mcp-Session-Id", old)}, 400, -32600, "null"},
		{"RS-122 an unsupported version",
			ask{body: listTools, headers: hdr("Mcp-Session-Id", now, "Mcp-Protocol-Version", "2025-01-01")}, 400,
			-32600, "3"},
		{"RS-124 another version than the session's",
			ask{body: listTools, headers: hdr("Mcp-Session-Id", now, "Mcp-Protocol-Version", "2025-06-18")}, 400,
			-32600, "3"},
		{"RS-70 the version is the one the server chose",
			ask{body: listTools, headers: hdr("Mcp-Session-Id", first, "Mcp-Protocol-Version", "2025-11-25")}, 200, 0,
			"3"},
		{"RS-131 a header in another case", ask{body: listTools, headers: hdr("MCP-SESSION-ID", now)}, 200, 0, "3"},
		{"RS-102 no Accept at all", ask{body: listTools, headers: hdr("Mcp-Session-Id", now, "Accept", "-")}, 200, 0,
			"3"},
		{"RS-102 any type", ask{body: listTools, headers: hdr("Mcp-Session-Id", now, "Accept", "*/*")}, 200, 0, "3"},
		{"RS-102 no acceptable type",
			ask{body: listTools, headers: hdr("Mcp-Session-Id", now, "Accept", "text/html")}, 406, -32600, "3"},
		{"RS-103 another Content-Type",
			ask{body: listTools, headers: hdr("Mcp-Session-Id", now, "Content-Type", "text/plain")}, 415, -32600, "3"},
		{"RS-100 a notification",
			ask{body: `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`,
				headers: hdr("Mcp-Session-Id", now)}, 202, 0, ""},
		{"RS-69 a notification that is not known",
			ask{body: `{"jsonrpc":"2.0","method":"notifications/none"}`, headers: hdr("Mcp-Session-Id", now)}, 400,
			-32600, "null"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := r.ask(t, "alice-mcp-deep", tt.ask)
			if got.status != tt.status || got.code != tt.code || tt.id != "-" && got.id != tt.id {
				t.Errorf("got %d %d id %s, want %d %d id %s: %s", got.status, got.code, got.id, tt.status, tt.code,
					tt.id, got.text)
			}
		})
	}
	t.Run("RS-127 RS-130 priming events are for 2025-11-25", func(t *testing.T) {
		for session, want := range map[string]bool{now: true, mid: false, old: false} {
			if got := r.ask(t, "alice-mcp-deep",
				ask{body: listTools, headers: hdr("Mcp-Session-Id", session)}); strings.Contains(got.text,
				"event: prime") != want {
				t.Errorf("got %q, primed %t", got.text, want)
			}
		}
	})
}

func modern(method, params string) string {
	if params != "" {
		params += ","
	}
	return `{"jsonrpc":"2.0","id":3,"method":"` + method + `","params":{` + params + modernMeta + `}}`
}

// TestStatelessEra does the same for 2026-07-28.
func TestStatelessEra(t *testing.T) {
	schema := json.RawMessage(
		`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"}}}`,
	)
	r := newRig(t, nil, func(s *mcp.Server) {
		s.AddTool(&mcp.Tool{Name: "mirrored", InputSchema: schema}, okTool)
		s.AddTool(&mcp.Tool{Name: "héllo", InputSchema: schema}, okTool)
	})
	v := func(method string, more ...string) map[string][]string {
		return hdr(append([]string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method}, more...)...)
	}
	call := func(name, args string) string {
		return modern("tools/call", `"name":"`+name+`","arguments":{`+args+`}`)
	}
	for _, tt := range []struct {
		name   string
		ask    ask
		status int
		code   int64
	}{
		{"RS-135 server/discover", ask{body: modern("server/discover", ""), headers: v("server/discover")}, 200, 0},
		{"RS-137 an array", ask{body: `[` + modern("tools/list", "") + `]`, headers: v("tools/list")}, 400, -32600},
		{"RS-137 a response", ask{body: `{"jsonrpc":"2.0","id":3,"result":{}}`, headers: v("x")}, 400, -32600},
		{"RS-138 no version in _meta", ask{body: listTools, headers: v("tools/list")}, 400, -32602},
		{"RS-138 no capabilities in _meta",
			ask{body: `{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
				headers: v("tools/list")}, 400, -32602},
		{"RS-142 RS-143 an unknown version",
			ask{body: strings.ReplaceAll(modern("tools/list", ""), "2026-07-28", "v999.0.0"),
				headers: hdr("Mcp-Protocol-Version", "v999.0.0", "Mcp-Method", "tools/list")}, 400, -32022},
		{"RS-144 no version header", ask{body: modern("tools/list", ""), headers: hdr("Mcp-Method", "tools/list")},
			400, -32020},
		{"RS-144 another version in the header",
			ask{body: modern("tools/list", ""),
				headers: hdr("Mcp-Protocol-Version", "2025-11-25", "Mcp-Method", "tools/list")}, 400, -32020},
		{"RS-146 no Mcp-Method",
			ask{body: modern("tools/list", ""), headers: hdr("Mcp-Protocol-Version", "2026-07-28")}, 400, -32020},
		{"RS-146 another Mcp-Method", ask{body: modern("tools/list", ""), headers: v("TOOLS/LIST")}, 400, -32020},
		{"RS-147 no Mcp-Name", ask{body: call("open", ""), headers: v("tools/call")}, 400, -32020},
		{"RS-147 another Mcp-Name", ask{body: call("open", ""), headers: v("tools/call", "Mcp-Name", "secret")}, 400,
			-32020},
		{"RS-147 two Mcp-Name",
			ask{body: call("open", ""), headers: v("tools/call", "Mcp-Name", "open", "Mcp-Name", "open")}, 400, -32020},
		{"RS-148 white space around a value",
			ask{body: call("open", ""), headers: v("tools/call", "Mcp-Name", "  open ")}, 200, 0},
		{"RS-149 Mcp-Name in Base64",
			ask{body: call("héllo", ""), headers: v("tools/call", "Mcp-Name", "=?base64?aMOpbGxv?=")}, 200, 0},
		{"RS-149 Mcp-Name in Base64 of another name",
			ask{body: call("open", ""), headers: v("tools/call", "Mcp-Name", "=?base64?aMOpbGxv?=")}, 400, -32020},
		{"RS-149 an upper-case marker is literal",
			ask{body: call("open", ""), headers: v("tools/call", "Mcp-Name", "=?BASE64?b3Blbg==?=")}, 400, -32020},
		{"RS-150 Base64 without padding",
			ask{body: call("open", ""), headers: v("tools/call", "Mcp-Name", "=?base64?b3Blbg?=")}, 400, -32020},
		{"RS-151 a mirrored parameter",
			ask{body: call("mirrored", `"region":"eu"`),
				headers: v("tools/call", "Mcp-Name", "mirrored", "Mcp-Param-Region", "eu")}, 200, 0},
		{"RS-151 a mirrored parameter in Base64",
			ask{body: call("mirrored", `"region":"é"`),
				headers: v("tools/call", "Mcp-Name", "mirrored", "Mcp-Param-Region", "=?base64?w6k=?=")}, 200, 0},
		{"RS-150 a mirrored parameter in Base64 with bits to spare",
			ask{body: call("mirrored", `"region":"eu"`),
				headers: v("tools/call", "Mcp-Name", "mirrored", "Mcp-Param-Region", "=?base64?ZXV=?=")}, 400, -32020},
		{"RS-151 a mirrored parameter that is missing",
			ask{body: call("mirrored", `"region":"eu"`), headers: v("tools/call", "Mcp-Name", "mirrored")}, 400,
			-32020},
		{"RS-151 a mirrored parameter with another value",
			ask{body: call("mirrored", `"region":"eu"`),
				headers: v("tools/call", "Mcp-Name", "mirrored", "Mcp-Param-Region", "us")}, 400, -32020},
		{"RS-151 a mirrored parameter twice",
			ask{body: call("mirrored", `"region":"eu"`),
				headers: v("tools/call", "Mcp-Name", "mirrored", "Mcp-Param-Region", "eu", "Mcp-Param-Region", "us")},
			400, -32020},
		{"RS-152 an integer by its value",
			ask{body: call("mirrored", `"n":42`),
				headers: v("tools/call", "Mcp-Name", "mirrored", "Mcp-Param-N", "42.0")}, 200, 0},
		{"RS-153 a parameter that is not mirrored",
			ask{body: call("open", ""), headers: v("tools/call", "Mcp-Name", "open", "Mcp-Param-Other", "x")}, 200, 0},
		{"RS-154 a notification without Mcp-Method",
			ask{body: `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`,
				headers: hdr("Mcp-Protocol-Version", "2026-07-28")}, 202, 0},
		{"RS-154 a notification with another",
			ask{body: `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`,
				headers: v("ping")}, 400, -32020},
		{"RS-159 initialize",
			ask{body: modern("initialize",
				`"protocolVersion":"2026-07-28","capabilities":{},"clientInfo":{"name":"t","version":"1"}`),
				headers: v("initialize")}, 404, -32601},
		{"RS-74 ping", ask{body: modern("ping", ""), headers: v("ping")}, 404, -32601},
		{"RS-159 tasks are absent",
			ask{body: modern("tasks/get", `"taskId":"1"`), headers: v("tasks/get", "Mcp-Name", "1")}, 404, -32601},
		{"RS-136 a feature that the server does not have",
			ask{body: modern("prompts/list", ""), headers: v("prompts/list")}, 404, -32601},
		{"RS-160 GET", ask{method: "GET", headers: v("x")}, 405, -32600},
		{"RS-160 DELETE", ask{method: "DELETE", headers: v("x")}, 405, -32600},
		{"RS-67 an id that is null",
			ask{body: strings.Replace(modern("tools/list", ""), `"id":3`, `"id":null`, 1), headers: v("tools/list")},
			400, -32600},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := r.ask(t, "alice-mcp-deep", tt.ask)
			if got.status != tt.status || got.code != tt.code {
				t.Errorf("got %d %d, want %d %d: %s", got.status, got.code, tt.status, tt.code, got.text)
			}
			if got.status == 405 && got.header.Get("Allow") == "" {
				t.Error("RS-66: no Allow")
			}
		})
	}
}

// TestResourceCodes: RS-78 RS-171 the code for a missing resource depends on the revision. The SDK
// has one code for all, and a handler may use another.
func TestResourceCodes(t *testing.T) {
	r := newRig(t, nil, func(s *mcp.Server) {
		s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "x://{+path}", Name: "x"}, legacyMissing)
	})
	session := r.initialize(t, "alice-mcp")
	got := r.ask(t, "alice-mcp",
		ask{body: `{"jsonrpc":"2.0","id":8,"method":"resources/read","params":{"uri":"y://none"}}`,
			headers: hdr("Mcp-Session-Id", session)})
	if got.code != -32002 {
		t.Errorf("2025-11-25: got %s", got.text)
	}
	for uri, from := range map[string]string{"y://none": "the SDK", "x://none": "a handler"} {
		got = r.ask(t, "alice-mcp",
			ask{body: modern("resources/read", `"uri":"`+uri+`"`),
				headers: hdr("Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "resources/read", "Mcp-Name", uri)})
		if got.status != 400 || got.code != -32602 {
			t.Errorf("2026-07-28, from %s: got %d %s", from, got.status, got.text)
		}
	}
}

// TestSessionless: a server that issues no session ids does not require them.
func TestSessionless(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "t", Version: "1"},
		&mcp.ServerOptions{GetSessionID: func() string { return "" }})
	mcp.AddTool(s, &mcp.Tool{Name: "open"}, okTyped)
	r := newRig(t, nil)
	a := New(r.guard, s, nil)
	r.Config.Handler = r.guard.Handler(a.HTTP())
	if got := r.ask(t, "alice-mcp", ask{body: listTools}); got.status != 400 {
		t.Fatalf("before anything is known: got %d", got.status)
	}
	r.ask(t, "alice-mcp",
		ask{body: `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`})
	if got := r.ask(t, "alice-mcp",
		ask{body: listTools, headers: hdr("Mcp-Protocol-Version", "2025-06-18")}); got.status != 200 ||
		!strings.Contains(got.text, "open") {
		t.Errorf("got %d %s", got.status, got.text)
	}
}

// TestNegotiated: RS-70 RS-77 the revision chosen by the server applies.
func TestNegotiated(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "t", Version: "1"},
		&mcp.ServerOptions{SupportedProtocolVersions: []string{"2025-06-18"}})
	mcp.AddTool(s, &mcp.Tool{Name: "open"}, okTyped)
	r := newRig(t, nil)
	r.Config.Handler = r.guard.Handler(New(r.guard, s, nil).HTTP())
	opened := r.ask(t, "alice-mcp",
		ask{body: `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`})
	got := r.ask(t, "alice-mcp",
		ask{body: `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"open","arguments":{"x":1}}}`,
			headers: hdr("Mcp-Session-Id", opened.header.Get("Mcp-Session-Id"))})
	if got.code != -32602 {
		t.Errorf("got %d %s", got.status, got.text)
	}
}

// TestLastEventIsIgnored: without sessions there are no events to resume.
func TestLastEventIsIgnored(t *testing.T) {
	r := newRig(t, nil)
	for method, want := range map[string]int{http.MethodPost: 200, http.MethodGet: 405} {
		headers := hdr("Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list", "Last-Event-ID", "x_1")
		q := ask{method: method, headers: headers}
		if method == http.MethodPost {
			q.body = modern("tools/list", "")
		}
		if got := r.ask(t, "alice-mcp", q); got.status != want {
			t.Errorf("RS-160 %s: got %d %s, want %d", method, got.status, got.text, want)
		}
	}
}

// TestForeignSessionIsIgnored: a request without sessions ignores the header.
func TestForeignSessionIsIgnored(t *testing.T) {
	r := newRig(t, nil)
	headers := hdr("Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list", "Mcp-Session-Id",
		r.initialize(t, "alice-mcp"))
	got := r.ask(t, "bob-mcp", ask{body: modern("tools/list", ""), headers: headers})
	if got.status != http.StatusOK || got.header.Get("Mcp-Session-Id") != "" {
		t.Errorf("RS-160: got %d %s", got.status, got.text)
	}
}
