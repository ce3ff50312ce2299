package mcpresource

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/pipetest"
)

const (
	resource   = "https://mcp.example.com/mcp"
	authServer = "https://auth.example.com"
	prmURL     = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
)

// people returns the tokens that the test validator knows.
func people(now time.Time) map[string]*Principal {
	p := func(sub string, scopes ...string) *Principal {
		return &Principal{
			Issuer: authServer, Subject: sub, ClientID: "app", TokenID: "jti", Scopes: scopes,
			Audience: []string{resource}, ExpiresAt: now.Add(time.Hour),
		}
	}
	other := p("mallory", "mcp")
	other.Audience = []string{"https://other.example.com/mcp"}
	foreign := p("mallory", "mcp")
	foreign.Issuer = "https://evil.example.com"
	expired := p("mallory", "mcp")
	expired.ExpiresAt = now.Add(-time.Hour)
	origin := p("alice", "mcp")
	origin.Audience = []string{"account", "https://mcp.example.com"}
	odd := p("alice", "mcp")
	odd.Audience = []string{"account", "%", resource}
	return map[string]*Principal{
		"alice": p("alice", "mcp"), "bob": p("bob", "mcp"), "writer": p("alice", "mcp", "files:write"),
		"admin": p("root", "mcp", "admin"), "poor": p("poor"),
		"other-audience": other, "other-issuer": foreign, "expired": expired, "origin-audience": origin,
		"odd-audience": odd,
	}
}

// rig is a guard in front of a handler that records requests.
type rig struct {
	*Guard
	h      http.Handler
	now    time.Time
	seen   []*http.Request
	bodies []string
	events []Event
	next   http.HandlerFunc
}

func newRig(t testing.TB, change func(*Config)) *rig {
	t.Helper()
	r := &rig{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	tokens := people(r.now)
	c := Config{
		Resource: resource, AuthorizationServers: []string{authServer},
		Validator: ValidatorFunc(func(_ context.Context, c Credential) (*Principal, error) {
			if c.Token == "outage" {
				return nil, errors.Join(ErrUnavailable, errors.New("dial tcp 10.0.0.7:443: secret detail"))
			}
			if p, ok := tokens[c.Token]; ok {
				return p, nil
			}
			return nil, ErrInvalidToken
		}),
		Policy: &Rules{
			Base: []string{"mcp"}, Default: []string{"unlisted"},
			Tools: map[string][]string{
				"read": {}, "write_*": {"files:write"}, "write_logs": {"logs:write"},
				"both": {"files:write", "logs:write"},
			},
			Resources: map[string][]string{"file:///public/*": {}},
			Prompts:   map[string][]string{"hello": {}},
			Methods:   map[string][]string{"logging/setLevel": {"admin"}},
			Deny:      []string{"danger*"},
			Implies:   map[string][]string{"admin": {"files:write"}, "files:write": {"files:read"}},
			Public:    []string{"ping"},
		},
		Now: func() time.Time { return r.now }, Audit: func(e Event) { r.events = append(r.events, e) },
	}
	if change != nil {
		change(&c)
	}
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	r.Guard = g
	r.h = g.Handler(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.seen, r.bodies = append(r.seen, req), append(r.bodies, string(body))
		if r.next != nil {
			r.next(w, req)
		}
	}))
	return r
}

func (r *rig) do(method, path, body string, header ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, "https://mcp.example.com"+path, strings.NewReader(body))
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	r.h.ServeHTTP(w, req)
	return w
}

func (r *rig) call(token, body string, header ...string) *httptest.ResponseRecorder {
	return r.do(http.MethodPost, "/mcp", body, append([]string{"Authorization", "Bearer " + token}, header...)...)
}

func tool(name string) string {
	b, _ := json.Marshal(name)
	return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":` + string(b) + `,"arguments":{"a":1}}}`
}

func TestChallenges(t *testing.T) {
	const (
		none = `Bearer scope="mcp", resource_metadata="` + prmURL + `"`
		bad  = `Bearer error="invalid_token", error_description="The access token is not valid.", scope="mcp", resource_metadata="` +
			prmURL + `"`
		wrong = `Bearer error="invalid_token", error_description="The access token is not valid for this server.", scope="mcp", resource_metadata="` +
			prmURL + `"`
		broken = `Bearer error="invalid_request", error_description="The Authorization header is malformed.", resource_metadata="` +
			prmURL + `"`
	)
	r := newRig(t, nil)
	for _, method := range []string{"GET", "HEAD", "DELETE", "POST", "PUT", "PATCH", "OPTIONS"} {
		t.Run("RS-14 RS-16 RS-17 RS-18 SP-19 no credentials: "+method, func(t *testing.T) {
			w := r.do(method, "/mcp", "")
			if w.Code != 401 || w.Header().Get("WWW-Authenticate") != none ||
				w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("got %d %q", w.Code, w.Header().Get("WWW-Authenticate"))
			}
		})
	}
	for _, tt := range []struct {
		name, path string
		header     []string
		status     int
		challenge  string
	}{
		{"RS-18 a bad token", "/mcp", []string{"Authorization", "Bearer nonsense"}, 401, bad},
		{"RS-37 RS-39 another audience is 401 and not 403", "/mcp",
			[]string{"Authorization", "Bearer other-audience"}, 401, wrong},
		{"RS-40 another issuer", "/mcp", []string{"Authorization", "Bearer other-issuer"}, 401, wrong},
		{"RS-41 expired", "/mcp", []string{"Authorization", "Bearer expired"}, 401, wrong},
		{"RS-22 nothing after the scheme", "/mcp", []string{"Authorization", "Bearer"}, 400, broken},
		{"RS-22 two tokens in one header", "/mcp", []string{"Authorization", "Bearer a b"}, 400, broken},
		{"RS-22 two headers", "/mcp", []string{"Authorization", "Bearer alice", "Authorization", "Bearer bob"}, 400,
			broken},
		{"RS-22 another scheme", "/mcp", []string{"Authorization", "Basic YTpi"}, 400, broken},
		{"RS-25 a token in the query is not looked at", "/mcp?access_token=alice", nil, 401, none},
		{"RS-26 nor one in a form", "/mcp", []string{"Content-Type", "application/x-www-form-urlencoded"}, 401, none},
		{"RS-24 the scheme regards no case", "/mcp", []string{"Authorization", "bEARER alice"}, 200, ""},
		{"RS-47 an array with members that are no URLs", "/mcp", []string{"Authorization", "Bearer odd-audience"},
			200, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := len(r.seen)
			w := r.do("POST", tt.path, tool("read"), tt.header...)
			if w.Code != tt.status || w.Header().Get("WWW-Authenticate") != tt.challenge {
				t.Errorf("got %d %q\nwant %d %q", w.Code, w.Header().Get("WWW-Authenticate"), tt.status, tt.challenge)
			}
			if reached := len(r.seen) > before; reached != (tt.status == 200) {
				t.Errorf("RS-48: reached the handler: %v", reached)
			}
		})
	}
	t.Run("RS-23 an outage is 503 with Retry-After and says nothing", func(t *testing.T) {
		w := r.call("outage", tool("read"))
		if w.Code != 503 || w.Header().Get("Retry-After") == "" || strings.Contains(w.Body.String(), "10.0.0.7") ||
			w.Header().Get("WWW-Authenticate") != "" {
			t.Errorf("got %d %v %s", w.Code, w.Header(), w.Body)
		}
	})
}

func TestScopes(t *testing.T) {
	r := newRig(t, nil)
	challenge := func(scope string) string {
		return `Bearer error="insufficient_scope", error_description="This operation needs more scope.", scope="` +
			scope + `", resource_metadata="` + prmURL + `"`
	}
	for _, tt := range []struct {
		name, token, body string
		status            int
		scope             string
	}{
		{"RS-43 SP-20 a tool that needs no more than a narrow token has", "alice", tool("read"), 200, ""},
		{"RS-28 RS-33 SP-19 a glob", "alice", tool("write_file"), 403, "mcp files:write"},
		{"RS-43 with the scope", "writer", tool("write_file"), 200, ""},
		{"RS-43 RS-30 the exact name goes before the glob", "writer", tool("write_logs"), 403,
			"mcp logs:write files:write"},
		{"RS-29 every scope at once", "writer", tool("both"), 403, "mcp files:write logs:write"},
		{"RS-32 the hierarchy counts", "admin", tool("write_file"), 200, ""},
		{"RS-43 an unknown tool needs the default", "alice", tool("new"), 403, "mcp unlisted"},
		{"RS-43 the base is needed for everything", "poor", tool("read"), 403, "mcp"},
		{"RS-43 a method of its own", "alice",
			`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}}`, 403, "mcp admin"},
		{"RS-195 a resource by URI", "alice",
			`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///public/a"}}`, 200, ""},
		{"RS-195 a resource that no rule names", "alice",
			`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"file:///etc/passwd"}}`, 403,
			"mcp unlisted"},
		{"RS-43 a prompt", "alice", `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"hello"}}`, 200,
			""},
		{"RS-34 a batch is refused whole, with the union", "alice",
			`[` + tool("read") + `,` + tool("write_file") + `,` + tool("write_logs") + `]`, 403,
			"mcp files:write logs:write"},
		{"RS-34 a batch that may pass", "writer", `[` + tool("read") + `,` + tool("write_file") + `]`, 200, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for range 2 { // RS-31: the same every time
				w := r.call(tt.token, tt.body)
				want := ""
				if tt.scope != "" {
					want = challenge(tt.scope)
				}
				if w.Code != tt.status || w.Header().Get("WWW-Authenticate") != want {
					t.Errorf("got %d %q\nwant %d %q", w.Code, w.Header().Get("WWW-Authenticate"), tt.status, want)
				}
			}
		})
	}
	t.Run("RS-155 the refusal is a JSON-RPC error with the request's id", func(t *testing.T) {
		w := r.call("alice", tool("write_file"))
		want := `{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"This operation needs more scope.","data":{"error":"insufficient_scope","scope":"mcp files:write"}}}`
		if got := strings.TrimSpace(w.Body.String()); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
	t.Run("RS-43 a denied tool is 403 for everybody, without a hint", func(t *testing.T) {
		if w := r.call("admin", tool("dangerous")); w.Code != 403 || w.Header().Get("WWW-Authenticate") != "" {
			t.Errorf("got %d %v", w.Code, w.Header())
		}
	})
	t.Run("RS-27 a public method needs no token, and carries nobody", func(t *testing.T) {
		before := len(r.seen)
		if w := r.do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`); w.Code != 200 {
			t.Fatalf("got %d", w.Code)
		}
		if _, ok := FromContext(r.seen[before].Context()); ok {
			t.Error("somebody is in the context")
		}
		if w := r.do("POST", "/mcp", `[{"jsonrpc":"2.0","id":1,"method":"ping"},`+tool("read")+`]`); w.Code != 401 {
			t.Errorf("with a protected one in a batch: got %d", w.Code)
		}
		if w := r.do("POST", "/mcp", `nonsense`); w.Code != 401 {
			t.Errorf("a body from nobody: got %d, want nothing said about it", w.Code)
		}
	})
	t.Run("RS-56 Authorize answers the same for adapters", func(t *testing.T) {
		ctx := NewContext(t.Context(), people(r.now)["alice"])
		var scope *ScopeError
		if err := r.Authorize(ctx, Operation{Method: "tools/call", Name: "write_file"}); !errors.As(err, &scope) ||
			scope.Missing.String() != "files:write" {
			t.Errorf("got %v", err)
		}
		if err := r.Authorize(t.Context(), Operation{Method: "tools/list"}); !errors.Is(err, ErrNoCaller) {
			t.Errorf("got %v", err)
		}
	})
}

// TestParserDifferential contains requests that show a guard with encoding/json one tool and the
// server another.
func TestParserDifferential(t *testing.T) {
	r := newRig(t, nil)
	for name, body := range map[string]string{
		"a second key in another case":   `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write_file","Name":"read"}}`,
		"another method in another case": `{"jsonrpc":"2.0","id":1,"method":"tools/call","Method":"ping","params":{"name":"write_file"}}`,
		"other params in another case":   `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write_file"},"Params":{"name":"read"}}`,
		"a second JSON value":            tool("read") + tool("write_file"),
		"a duplicate key":                `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","name":"write_file"}}`,
		"a duplicate key, escaped":       `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","n\u0061me":"write_file"}}`,
		"the long s, which folds":        `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write_file"},"param\u017f":{"name":"read"}}`,
		"invalid UTF-8":                  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"read\xff\"}}",
		"a lone surrogate":               `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read\ud800"}}`,
		"a NUL":                          `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read\u0000"}}`,
		"a name that is no string":       `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["read"]}}`,
		"a method that is no string":     `{"jsonrpc":"2.0","id":1,"method":7}`,
		"no JSON":                        `{"jsonrpc"`,
		"nothing":                        ``,
		"nesting beyond any need":        strings.Repeat("[", 10_000),
		"a batch inside a batch":         `[[` + tool("read") + `]]`,
	} {
		t.Run("RS-103 refused: "+name, func(t *testing.T) {
			before := len(r.seen)
			w := r.call("alice", body)
			if w.Code != 400 || !strings.Contains(w.Body.String(), "-32700") || len(r.seen) != before {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
		})
	}
	t.Run("the body reaches the handler byte for byte", func(t *testing.T) {
		body := "  " + tool("read") + "\n"
		r.call("alice", body)
		if got := r.bodies[len(r.bodies)-1]; got != body {
			t.Errorf("got %q", got)
		}
	})
	t.Run("RS-196 a body over the limit is 413", func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.MaxBodyBytes = 100 })
		if w := r.call("alice", tool(strings.Repeat("a", 100))); w.Code != 413 {
			t.Errorf("got %d", w.Code)
		}
	})
}

func TestHeaders(t *testing.T) {
	r := newRig(t, nil)
	for _, tt := range []struct {
		name   string
		header []string
		status int
		passed string
	}{
		{"RS-149 a Base64 name is decoded", []string{"Mcp-Name", "=?base64?cmVhZA==?="}, 200, "read"},
		{"RS-150 bad padding", []string{"Mcp-Name", "=?base64?cmVhZA?="}, 400, ""},
		{"RS-150 bad alphabet", []string{"Mcp-Name", "=?base64?cm_hZA==?="}, 400, ""},
		{"RS-149 upper-case markers are literal", []string{"Mcp-Name", "=?BASE64?cmVhZA==?="}, 400, ""},
		{"RS-149 a line break inside is refused", []string{"Mcp-Name", "=?base64?DQo=?="}, 400, ""},
		{"RS-147 a repeated header", []string{"Mcp-Name", "read", "Mcp-Name", "write_file"}, 400, ""},
		{"RS-124 a repeated version",
			[]string{"Mcp-Protocol-Version", "2025-11-25", "Mcp-Protocol-Version", "2026-07-28"}, 400, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := r.call("alice", tool("read"), tt.header...)
			if w.Code != tt.status || tt.status == 400 && !strings.Contains(w.Body.String(), "-32020") {
				t.Fatalf("got %d %s", w.Code, w.Body)
			}
			if tt.passed != "" && r.seen[len(r.seen)-1].Header.Get("Mcp-Name") != tt.passed {
				t.Errorf("got %q", r.seen[len(r.seen)-1].Header.Get("Mcp-Name"))
			}
		})
	}
	t.Run("RS-158 what the headers say decides nothing: the body and the token do", func(t *testing.T) {
		for _, header := range [][]string{
			nil, {"Mcp-Method", "ping"}, {"Mcp-Name", "read"}, {"Mcp-Method", "ping", "Mcp-Name", "read"},
		} {
			before := len(r.seen)
			if w := r.call("alice", tool("write_file"), header...); w.Code != 403 && w.Code != 400 ||
				len(r.seen) != before {
				t.Errorf("%v: got %d, reached the handler: %v", header, w.Code, len(r.seen) != before)
			}
		}
	})
	t.Run("RS-49 SP-06 the token does not reach the handler, the caller does", func(t *testing.T) {
		r.call("alice", tool("read"))
		req := r.seen[len(r.seen)-1]
		p, ok := FromContext(req.Context())
		if req.Header.Get("Authorization") != "" || !ok || p.Subject != "alice" {
			t.Errorf("got %v %+v", req.Header, p)
		}
	})
	t.Run("SP-07 events say who and what, and never hold the token", func(t *testing.T) {
		r.events = nil
		r.call("alice", tool("write_file"))
		r.call("a-secret-token", tool("read"))
		b, _ := json.Marshal(r.events)
		if len(r.events) != 2 || r.events[0].Outcome != "insufficient_scope" ||
			r.events[0].Principal.Subject != "alice" || r.events[0].Operations[0].Name != "write_file" ||
			r.events[1].Outcome != "invalid_token" || bytes.Contains(b, []byte("a-secret-token")) ||
			bytes.Contains(b, []byte(`"a":1`)) {
			t.Errorf("got %s", b)
		}
	})
}

func TestOrigins(t *testing.T) {
	local := newRig(t, func(c *Config) { c.Resource = "http://127.0.0.1:8080/mcp" })
	public := newRig(t, func(c *Config) { c.Origins, c.CORS = []string{"https://app.example.com"}, true })
	for _, tt := range []struct {
		name, host, origin string
		r                  *rig
		want               int
	}{
		{"RS-61 no Origin", "mcp.example.com", "", public, 401},
		{"RS-59 the server's own", "mcp.example.com", "https://mcp.example.com", public, 401},
		{"RS-59 a named one", "mcp.example.com", "https://app.example.com", public, 401},
		{"RS-59 RS-60 a foreign one", "mcp.example.com", "https://evil.example", public, 403},
		{"RS-60 null", "mcp.example.com", "null", public, 403},
		{"RS-60 another scheme", "mcp.example.com", "http://mcp.example.com", public, 403},
		{"RS-60 another port", "mcp.example.com", "https://mcp.example.com:444", public, 403},
		{"RS-60 a prefix of ours", "mcp.example.com", "https://mcp.example.com.evil.example", public, 403},
		{"RS-62 SP-22 what follows a colon and is no port is another host", "127.0.0.1:8080.evil.example", "", local,
			403},
		{"RS-62 rebinding: Origin and Host agree and are not ours", "evil.example", "http://evil.example", local, 403},
		{"RS-62 a foreign Host alone", "evil.example:8080", "", local, 403},
		{"RS-62 RS-64 localhost by any name and port, and a token is asked for", "localhost:9",
			"http://localhost:5173", local, 401},
		{"RS-62 RS-64 IPv6 loopback", "[::1]:8080", "", local, 401},
		{"RS-62 a public server is not localhost", "localhost", "", public, 403},
	} {
		for _, method := range []string{"POST", "GET", "DELETE"} {
			t.Run(tt.name+" "+method, func(t *testing.T) {
				req := httptest.NewRequest(method, "/mcp", nil)
				req.Host = tt.host
				if tt.origin != "" {
					req.Header.Set("Origin", tt.origin)
				}
				w := httptest.NewRecorder()
				tt.r.h.ServeHTTP(w, req)
				if w.Code != tt.want || w.Code == 403 && w.Header().Get("WWW-Authenticate") != "" {
					t.Errorf("got %d %v, want %d", w.Code, w.Header(), tt.want)
				}
			})
		}
	}
	t.Run("RS-65 the preflight of a named origin", func(t *testing.T) {
		w := public.do("OPTIONS", "/mcp", "", "Origin", "https://app.example.com", "Access-Control-Request-Method",
			"POST", "Access-Control-Request-Headers", "authorization,mcp-param-region")
		h := w.Header()
		if w.Code != 204 || h.Get("Access-Control-Allow-Origin") != "https://app.example.com" ||
			!strings.Contains(h.Get("Access-Control-Allow-Headers"), "Mcp-Method") ||
			!strings.Contains(h.Get("Access-Control-Allow-Headers"), "mcp-param-region") ||
			!strings.Contains(h.Get("Access-Control-Expose-Headers"), "WWW-Authenticate") {
			t.Errorf("got %d %v", w.Code, h)
		}
		if w := public.do("OPTIONS", "/mcp", "", "Origin", "https://evil.example", "Access-Control-Request-Method",
			"POST"); w.Code != 403 || w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("a foreign one: got %d %v", w.Code, w.Header())
		}
	})
}

func TestDocuments(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Metadata = Metadata{Name: "Files", ScopesSupported: []string{"mcp", "offline_access"}}
	})
	for path, want := range map[string]string{
		"/.well-known/oauth-protected-resource/mcp": resource,
		"/.well-known/oauth-protected-resource":     "https://mcp.example.com",
	} {
		t.Run("RS-01 RS-03 RS-05 RS-07 RS-09 RS-12 "+path, func(t *testing.T) {
			w := r.do("GET", path, "", "MCP-Protocol-Version", "garbage")
			var doc map[string]any
			json.Unmarshal(w.Body.Bytes(), &doc)
			if w.Code != 200 || doc["resource"] != want || w.Header().Get("Access-Control-Allow-Origin") != "*" ||
				strings.Contains(w.Body.String(), "offline_access") ||
				!strings.Contains(w.Body.String(), `"bearer_methods_supported":["header"]`) ||
				!strings.Contains(w.Body.String(), authServer) {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
		})
	}
	t.Run("RS-04 PathOnly leaves the root out", func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Metadata.PathOnly = true })
		if w := r.do("GET", "/.well-known/oauth-protected-resource", ""); w.Code != 404 {
			t.Errorf("got %d", w.Code)
		}
	})
	// Security M6.
	t.Run("RS-47 SP-05 a token for the origin is for another resource unless told otherwise", func(t *testing.T) {
		for _, accept := range []bool{false, true} {
			for _, pathOnly := range []bool{false, true} {
				r := newRig(t, func(c *Config) { c.OriginAudience, c.Metadata.PathOnly = accept, pathOnly })
				w, want := r.call("origin-audience", tool("read")), map[bool]int{false: 401, true: 200}[accept]
				if w.Code != want || want == 401 && !strings.Contains(w.Body.String(), "not valid for this server") {
					t.Errorf("%t, %t: got %d %s, want %d", accept, pathOnly, w.Code, w.Body, want)
				}
			}
		}
	})
}

func TestSessions(t *testing.T) {
	r := newRig(t, nil)
	r.next = func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Mcp-Session-Id") == "" {
			w.Header().Set("Mcp-Session-Id", "s1")
		}
		w.WriteHeader(http.StatusOK)
	}
	r.call("alice", tool("read"))
	t.Run("RS-112 RS-113 SP-13 a session belongs to the caller who opened it", func(t *testing.T) {
		for token, want := range map[string]int{"alice": 200, "writer": 200, "bob": 404} {
			if w := r.call(token, tool("read"), "Mcp-Session-Id", "s1"); w.Code != want {
				t.Errorf("%s: got %d, want %d", token, w.Code, want)
			}
		}
		if w := r.do("POST", "/mcp", tool("read"), "Mcp-Session-Id", "s1"); w.Code != 401 {
			t.Errorf("without a token: got %d", w.Code)
		}
	})
	t.Run("RS-111 the owner's DELETE releases it, a stranger's does not", func(t *testing.T) {
		if w := r.do("DELETE", "/mcp", "", "Authorization", "Bearer bob", "Mcp-Session-Id", "s1"); w.Code != 404 {
			t.Errorf("got %d", w.Code)
		}
		r.do("DELETE", "/mcp", "", "Authorization", "Bearer alice", "Mcp-Session-Id", "s1")
		if _, ok, _ := r.c.Sessions.Owner(t.Context(), "s1"); ok {
			t.Error("still bound")
		}
	})
	t.Run("RS-51 what is remembered is bounded", func(t *testing.T) {
		m := NewMemorySessions(3)
		for _, id := range []string{"a", "b", "c", "d"} {
			m.Claim(t.Context(), id, Binding{Person: "x"})
		}
		if _, ok, _ := m.Owner(t.Context(), "a"); ok {
			t.Error("the oldest is still there")
		}
		if o, ok, _ := m.Owner(t.Context(), "d"); !ok || o.Person != "x" {
			t.Error("the newest is gone")
		}
		m.Claim(t.Context(), "d", Binding{Person: "y"})
		if o, _, _ := m.Owner(t.Context(), "d"); o.Person != "x" {
			t.Error("a session changed hands")
		}
	})
}

func TestStreams(t *testing.T) {
	t.Run("RS-98 RS-170 a stream ends when its token does", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ended := make(chan error, 1)
			expires := time.Now().Add(time.Minute)
			g, err := New(Config{
				Resource:             "http://127.0.0.1/mcp",
				AuthorizationServers: []string{authServer},
				ClockSkew:            time.Nanosecond,
				Validator: ValidatorFunc(func(context.Context, Credential) (*Principal, error) {
					return &Principal{
						Issuer:    authServer,
						Subject:   "a",
						Audience:  []string{"http://127.0.0.1/mcp"},
						ExpiresAt: expires,
					}, nil
				}),
			})
			if err != nil {
				t.Fatal(err)
			}
			h := g.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(w, ": open\n\n")
				w.(http.Flusher).Flush()
				if err := http.NewResponseController(w).Flush(); err != nil {
					t.Error(err)
				}
				<-r.Context().Done()
				ended <- r.Context().Err()
			}))
			req, _ := http.NewRequest("GET", "http://127.0.0.1/mcp", nil)
			req.Header.Set("Authorization", "Bearer t")
			resp, err := pipetest.NewServer(t, &http.Server{Handler: h}).Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.Header.Get("X-Accel-Buffering") != "no" {
				t.Error("RS-163: a proxy may hold the stream back")
			}
			body, _ := io.ReadAll(resp.Body)
			if err := <-ended; !errors.Is(err, context.DeadlineExceeded) || string(body) != ": open\n\n" ||
				time.Since(expires).Abs() > time.Second {
				t.Errorf("got %v, %q, %v after its end", err, body, time.Since(expires))
			}
		})
	})
}

func TestLimiter(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Limits.Calls = Rate{PerSecond: 0.001, Burst: 2} })
	for i, want := range []int{200, 200, 429} {
		w := r.call("alice", tool("read"), "Mcp-Session-Id", strings.Repeat("x", i)) // RS-197: not by session
		if w.Code != want || want == 429 && w.Header().Get("Retry-After") == "" {
			t.Errorf("RS-189 call %d: got %d %v, want %d", i, w.Code, w.Header(), want)
		}
	}
	if w := r.call("bob", tool("read")); w.Code != 200 {
		t.Errorf("RS-197 another person: got %d", w.Code)
	}
	if w := r.call("alice", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); w.Code != 200 {
		t.Errorf("RS-189 a list: got %d", w.Code)
	}
}

func TestNewRefuses(t *testing.T) {
	good := Config{Resource: resource, AuthorizationServers: []string{authServer}, Validator: Local(nil)}
	for name, change := range map[string]func(*Config){
		"no resource":              func(c *Config) { c.Resource = "" },
		"a resource with fragment": func(c *Config) { c.Resource += "#x" },
		"http elsewhere":           func(c *Config) { c.Resource = "http://mcp.example.com/mcp" },
		"no authorization server":  func(c *Config) { c.AuthorizationServers = nil },
		"no validator":             func(c *Config) { c.Validator = nil },
		"an origin with a path":    func(c *Config) { c.Origins = []string{"https://app.example.com/x"} },
		"a tool without a rate":    func(c *Config) { c.Limits.Tools = map[string]Rate{"x": {Burst: 3}} },
		"rates beside a limiter":   func(c *Config) { c.Limiter, c.Limits.Calls = nobodyWaits{}, Rate{PerSecond: 3} },
		"a tool beside a limiter": func(c *Config) {
			c.Limiter, c.Limits.Tools = nobodyWaits{}, map[string]Rate{"x": {PerSecond: 3}}
		},
		"a host with a path":       func(c *Config) { c.Hosts = []string{"mcp.example.com/mcp"} },
		"an issuer that is no URL": func(c *Config) { c.AuthorizationServers = []string{"auth"} },
	} {
		t.Run("RS-03 "+name, func(t *testing.T) {
			c := good
			change(&c)
			if _, err := New(c); err == nil {
				t.Error("got nil")
			}
		})
	}
	if _, err := New(good); err != nil {
		t.Error(err)
	}
}

func TestTwoGuards(t *testing.T) {
	inner, outer := newRig(t, nil), newRig(t, nil)
	outer.next = inner.h.ServeHTTP
	t.Run("a guard behind another one says so, and not that a token is missing", func(t *testing.T) {
		req := httptest.NewRequest("GET", resource, nil)
		req.Header.Set("Authorization", "Bearer alice")
		w := httptest.NewRecorder()
		outer.h.ServeHTTP(w, req)
		if w.Code != http.StatusInternalServerError || w.Header().Get("WWW-Authenticate") != "" ||
			len(inner.seen) != 0 {
			t.Errorf("got %d %v", w.Code, w.Header())
		}
		if last := inner.events[len(inner.events)-1]; !errors.Is(last.Err, errTwoGuards) {
			t.Errorf("got %+v", last)
		}
	})
}
