package mcpresource

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// TestSpelledMethods: EN-10: a lenient server might accept a method in a non-standard spelling
// unchecked. Such a method is refused and does not reach the server: alone, as a notification and
// in a batch.
func TestSpelledMethods(t *testing.T) {
	for _, method := range []string{"Tools/Call", "TOOLS/CALL", "tool\u017f/call", "tas\u212as/get", "tools/call ",
		"Resources/read", "Ping"} {
		for name, body := range map[string]string{
			"a request":      `{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":{"name":"delete_all"}}`,
			"a notification": `{"jsonrpc":"2.0","method":"` + method + `","params":{"name":"delete_all"}}`,
			"in a batch":     `[` + tool("read") + `,{"jsonrpc":"2.0","id":7,"method":"` + method + `"}]`,
		} {
			r := newRig(t, nil)
			w := r.call("alice", body)
			if w.Code != 400 || !strings.Contains(w.Body.String(), "-32601") || len(r.seen) != 0 {
				t.Errorf("EN-10: %q, %s: got %d %s, want 400 and -32601", method, name, w.Code, w.Body)
			}
		}
	}
	for method, want := range map[string]Requirement{
		"own/Method": {Scopes: []string{"base", "more"}},
		"Own/Method": {Deny: true}, "own/method ": {Deny: true},
		"ADMIN/x": {Deny: true}, "admin/x": {Deny: true}, "other/x": {Scopes: []string{"base"}},
	} {
		rules := &Rules{
			Base: []string{"base"}, Methods: map[string][]string{"own/Method": {"more"}},
			DenyMethods: []string{"admin/*"},
		}
		got := rules.Require(Operation{Method: method})
		if got.Deny != want.Deny || !want.Deny && strings.Join(got.Scopes, " ") != strings.Join(want.Scopes, " ") {
			t.Errorf("EN-10: %q needs %+v, want %+v", method, got, want)
		}
	}
}

// TestMirroredHeaders: security L5. Headers that contradict the body are refused for every MCP
// server and revision.
func TestMirroredHeaders(t *testing.T) {
	read := `{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"file:///public/a"}}`
	for _, tt := range []struct {
		name, body string
		header     []string
		want       int
	}{
		{"RS-147 the tool of the body", tool("read"), []string{"Mcp-Method", "tools/call", "Mcp-Name", "read"}, 200},
		{"RS-147 Base64 of it", tool("read"), []string{"Mcp-Name", "=?base64?cmVhZA==?="}, 200},
		{"RS-148 with white space around", tool("read"),
			[]string{"Mcp-Method", " tools/call ", "Mcp-Name", " read\t"}, 200},
		{"RS-147 another tool", tool("read"), []string{"Mcp-Name", "delete_all"}, 400},
		{"RS-147 Base64 of another", tool("read"), []string{"Mcp-Name", "=?base64?ZGVsZXRlX2FsbA==?="}, 400},
		{"RS-147 another case", tool("read"), []string{"Mcp-Name", "READ"}, 400},
		{"RS-147 an empty one", tool("read"), []string{"Mcp-Name", ""}, 400},
		{"RS-147 the resource", read, []string{"Mcp-Name", "file:///public/a"}, 200},
		{"RS-147 another resource", read, []string{"Mcp-Name", "file:///private/a"}, 400},
		{"RS-146 another method", tool("read"), []string{"Mcp-Method", "tools/list"}, 400},
		{"RS-146 another case", tool("read"), []string{"Mcp-Method", "TOOLS/CALL"}, 400},
		// -32600
		{"RS-146 a call that says to be one, beside a response", `{"jsonrpc":"2.0","id":7,"result":{}}`,
			[]string{"Mcp-Method", "tools/call"}, 400},
		{"RS-146 each of a batch", "[" + tool("read") + "," + read + "]", []string{"Mcp-Method", "tools/call"}, 400},
		{"a name of what has none in the body is the server's",
			`{"jsonrpc":"2.0","id":7,"method":"tasks/list","params":{}}`, []string{"Mcp-Name", "t"}, 200},
		{"RS-187 the task of the body",
			`{"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{"taskId":"t"}}`, []string{"Mcp-Name", "t"}, 200},
		{"RS-187 another task", // -32020
			`{"jsonrpc":"2.0","id":7,"method":"tasks/cancel","params":{"taskId":"t"}}`, []string{"Mcp-Name", "u"}, 400},
	} {
		for _, version := range []string{"", "2025-11-25", "2026-07-28"} {
			r := newRig(t, nil)
			header := tt.header
			if version != "" {
				header = append([]string{"Mcp-Protocol-Version", version}, header...)
			}
			w := r.call("alice", tt.body, header...)
			if w.Code != tt.want ||
				tt.want == 400 && !strings.Contains(w.Body.String(), "-32020") &&
					!strings.Contains(w.Body.String(), "-32600") || (len(r.seen) == 1) != (tt.want == 200) {
				t.Errorf("%s, %q: got %d %s, want %d", tt.name, version, w.Code, w.Body, tt.want)
			}
		}
	}
}

// TestPublicAndDenied: mutation hole 7.
func TestPublicAndDenied(t *testing.T) {
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for name, change := range map[string]func(*Config){
		"both in the tables": func(c *Config) { c.Policy.(*Rules).DenyMethods = []string{"ping"} },
		"denied by Refine": func(c *Config) {
			c.Policy.(*Rules).Refine = func(_ Operation, need Requirement) Requirement { need.Deny = true; return need }
		},
	} {
		r := newRig(t, change)
		if w := r.do("POST", "/mcp", ping); w.Code != 401 || len(r.seen) != 0 {
			t.Errorf("RS-27 %s, anonymous: got %d", name, w.Code)
		}
		if w := r.call("admin", ping); w.Code != 403 || w.Header().Get("WWW-Authenticate") != "" || len(r.seen) != 0 {
			t.Errorf("RS-27 %s, with a token: got %d", name, w.Code)
		}
	}
	// mcpresource/authorize.go:29: the denied one decides in either order. Otherwise the client
	// would be sent to request scopes that do not help.
	for _, order := range [][2]string{{"write_x", "danger_zone"}, {"danger_zone", "write_x"}} {
		r := newRig(t, nil)
		w := r.call("alice", "["+tool(order[0])+","+tool(order[1])+"]")
		if w.Code != 403 || w.Header().Get("WWW-Authenticate") != "" ||
			!strings.Contains(w.Body.String(), "not permitted") || len(r.seen) != 0 {
			t.Errorf("RS-43 a batch of %v: got %d %v %s", order, w.Code, w.Header(), w.Body)
		}
	}
}

// TestHeld: RS-219. A held tool is denied while it is held, whatever the token's scopes. Other
// tools are not affected.
func TestHeld(t *testing.T) {
	var held atomic.Bool
	r := newRig(t, func(c *Config) {
		c.Policy.(*Rules).Held = func(tool string) string {
			if held.Load() && tool == "read" {
				return "it has changed"
			}
			return ""
		}
		c.Policy.(*Rules).Prompts = map[string][]string{"read": nil}
	})
	prompt := `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"read"}}`
	for _, want := range []int{200, 403, 200} {
		held.Store(want == 403)
		if w := r.call("admin", tool("read")); w.Code != want || w.Header().Get("WWW-Authenticate") != "" {
			t.Errorf("RS-219 held %v: got %d %s, want %d", held.Load(), w.Code, w.Body, want)
		}
		for _, other := range []string{tool("write_x"), prompt} {
			if w := r.call("admin", other); w.Code != 200 {
				t.Errorf("RS-219 %s: got %d %s", other, w.Code, w.Body)
			}
		}
	}
	r.Guard.c.Policy.(*Rules).Public = []string{"tools/call"}
	held.Store(true)
	need := r.Guard.c.Policy.Require(Operation{Method: "tools/call", Name: "read"})
	if !need.Deny || need.Public || need.Reason != "it has changed" {
		t.Errorf("RS-219: a held tool of a public method needs %+v", need)
	}
}

// TestIntrospectionStatus: mutation hole 12. A response other than 200 says nothing about a token,
// and is not cached as if it did.
func TestIntrospectionStatus(t *testing.T) {
	for _, status := range []int{201, 204, 302, 400, 401, 403, 404, 429, 500, 503} {
		for _, body := range []string{`{"error":"server_error"}`, `{"active":false}`, active("")} {
			answer, asked := status, 0
			v, err := NewIntrospectionValidator(IntrospectionConfig{
				Issuer: authServer, Endpoint: authServer + "/introspect", ClientID: "rs", ClientSecret: "s",
				HTTPClient: &http.Client{
					CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
					Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
						asked++
						return &http.Response{
							StatusCode: answer, Status: fmt.Sprint(answer), Header: http.Header{},
							Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
					}),
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if p, err := validate(v, "token"); p != nil || !errors.Is(err, ErrUnavailable) ||
				errors.Is(err, ErrInvalidToken) {
				t.Errorf("RS-45 %d %s: got %v, %v", status, body, p, err)
			}
			answer, body = 200, active("")
			if p, err := validate(v, "token"); err != nil || p.Subject != "alice" || asked != 2 {
				t.Errorf("RS-45 after %d: got %v, %v; asked %d times", status, p, err, asked)
			}
		}
	}
}

// TestUntyped: mutation hole 18. The option allows other types, and nothing else.
func TestUntyped(t *testing.T) {
	s := newSignerServer(t)
	for allow, want := range map[bool]string{false: "not an access token", true: ""} {
		v, err := NewJWTValidator(JWTConfig{Issuer: s.URL, InsecureAllowUntyped: allow})
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []string{"JWT", ""} {
			_, err := validate(v, s.token(t, "ES256", nil, s.claims(), "typ", kind))
			if (err == nil) != (want == "") ||
				err != nil && (!errors.Is(err, ErrInvalidToken) || !strings.Contains(err.Error(), want)) {
				t.Errorf("RS-42 typ %q, allowed %t: got %v", kind, allow, err)
			}
		}
		if _, err := validate(v,
			s.token(t, "ES256", nil, s.claims("iss", "https://evil.example.com"), "typ", "JWT")); !errors.Is(err,
			ErrInvalidToken) {
			t.Errorf("another issuer, allowed %t: got %v", allow, err)
		}
	}
}
