package stdio

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// modern sends a request of MCP 2026-07-28.
func (s *site) modern(method, name, params string, header ...string) *answer {
	s.t.Helper()
	body, h := modernCall("1", method, name, params)
	return s.post(body, append(h, header...)...)
}

func modernCall(id, method, name, params string) (string, []string) {
	if params != "" {
		params = "," + params
	}
	key := "name"
	if method == "resources/read" {
		key = "uri"
	}
	if name != "" {
		params = fmt.Sprintf(`,%q:%q`, key, name) + params
	}
	body := fmt.Sprintf(
		`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{"_meta":{"progressToken":5,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}%s}}`,
		id, method, params,
	)
	return body, []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method, "Mcp-Name", name}
}

// TestModern checks that messages to and from a program of 2026-07-28 pass unchanged.
func TestModern(t *testing.T) {
	s := serve(t, "modern", Config{})
	t.Run("RS-135 RS-165 RS-166 RS-167: server/discover, with all that it says of itself", func(t *testing.T) {
		r := s.modern("server/discover", "", "").result(t)
		if fmt.Sprint(r["supportedVersions"]) != "[2026-07-28]" || r["resultType"] != "complete" ||
			r["ttlMs"] != 7.0 || r["cacheScope"] != "private" ||
			fmt.Sprint(r["_meta"]) != "map[io.modelcontextprotocol/serverInfo:map[name:test]]" {
			t.Errorf("got %v", r)
		}
	})
	t.Run("a call without more is one JSON document, and opens no session", func(t *testing.T) {
		a := s.modern("tools/call", "echo", "")
		if a.header.Get("Content-Type") != "application/json" || a.header.Get("Mcp-Session-Id") != "" {
			t.Errorf("RS-160: got %v %s", a.header, a.body)
		}
		if a.header.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.HasPrefix(a.header.Get("Content-Security-Policy"), "sandbox;") {
			t.Errorf("Security L12: it could be a page: %v", a.header)
		}
		if meta := fmt.Sprint(a.result(t)["params"]); !strings.Contains(meta,
			"io.modelcontextprotocol/protocolVersion:2026-07-28") {
			t.Errorf("the program is not told the version: %s", meta)
		}
	})
	t.Run("RS-162: progress and logs come with the call", func(t *testing.T) {
		body, h := modernCall("1", "tools/call", "progress", "")
		if a := s.post(body, h...); len(a.events) != 4 || !strings.Contains(a.events[2].data, `"progressToken":5`) ||
			a.events[0].id != "" {
			t.Errorf("it asks for no logs: events %q", a.events)
		}
		body = strings.Replace(body, `"progressToken"`, `"io.modelcontextprotocol/logLevel":"info","progressToken"`, 1)
		if a := s.post(body, h...); len(a.events) != 5 || !strings.Contains(a.events[3].data, "notifications/message") {
			t.Errorf("it asks for logs: events %q", a.events)
		}
	})
	t.Run("RS-159: an unknown method is 404", func(t *testing.T) {
		if a := s.modern("acme/unknown", "", ""); a.status != 404 || !strings.Contains(a.body, "-32601") {
			t.Errorf("got %d %s", a.status, a.body)
		}
	})
	t.Run("RS-168: what is subscribed to comes on its own stream, under the client's id", func(t *testing.T) {
		body, h := modernCall(`"sub"`, "subscriptions/listen", "", "")
		a := s.post(body, h...)
		if len(a.events) != 3 || !strings.Contains(a.events[0].data, "acknowledged") {
			t.Fatalf("events %q", a.events)
		}
		for _, e := range a.events {
			if !strings.Contains(e.data, `"io.modelcontextprotocol/subscriptionId":"sub"`) {
				t.Errorf("a message has another subscriptionId: %s", e.data)
			}
		}
	})
	t.Run("one process for a caller, another for another", func(t *testing.T) {
		first, again, other := s.modern("tools/call", "echo", ""), s.modern("tools/call", "echo", ""),
			s.modern("tools/call", "echo", "", "Who", "bob")
		if first.result(t)["pid"] != again.result(t)["pid"] || first.result(t)["pid"] == other.result(t)["pid"] {
			t.Error("RS-89: processes are mixed up")
		}
	})
}

// TestModernBeforeOlderProgram: RS-142 RS-136. A program of an older revision needs the client
// capabilities from initialize, and the gateway does not invent them. Its clients learn that they
// must begin with initialize, and its sessions work completely.
func TestModernBeforeOlderProgram(t *testing.T) {
	for _, c := range []struct {
		name, mode string
		c          Config
	}{
		{"it refuses server/discover", "good", Config{}},
		{"it ends over server/discover", "strict", Config{}},
		{"it is shared", "modern", Config{Shared: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, c.mode, c.c)
			for _, method := range []string{"server/discover", "tools/list", "initialize", "acme/unknown"} {
				a := s.modern(method, "", "")
				want := `"error":{"code":-32022,"message":"This protocol version is not supported.",` +
					`"data":{"requested":"2026-07-28","supported":["2024-11-05","2025-03-26","2025-06-18","2025-11-25"]}}`
				if a.status != 400 || !strings.Contains(a.body, want) || !strings.Contains(a.body, `"id":1`) {
					t.Errorf("%s: got %d %s", method, a.status, a.body)
				}
			}
			h := s.open("2025-11-25") // immediately: the program's end after the question is not a failure
			if a := s.post(toolCall("2", "echo", ""), h...); a.status != 200 {
				t.Errorf("a session got %d %s", a.status, a.body)
			}
			if !c.c.Shared {
				wait.Until(t, "one process runs, and none for requests that are refused", func() bool {
					s.mu.Lock()
					defer s.mu.Unlock()
					return s.total <= 1 && len(s.hubs) == 0
				})
			}
		})
	}
}

// TestEra: RS-144. All parts of a request must agree on the revision.
func TestEra(t *testing.T) {
	s := serve(t, "modern", Config{})
	session := s.open("2025-11-25")
	body, h := modernCall("7", "tools/call", "echo", "")
	for _, c := range []struct {
		name   string
		header []string
		want   string
	}{
		{"without the version header", append(h[2:len(h):len(h)], "Mcp-Protocol-Version", ""), "-32020"},
		{"with the header of an older version", append(h[2:len(h):len(h)], "Mcp-Protocol-Version", "2025-11-25"),
			"-32020"},
		{"in a session", append(session, "Mcp-Method", "tools/call", "Mcp-Name", "echo"), "-32020"},
		{"without any header", nil, "-32020"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if a := s.post(body, c.header...); a.status != 400 || !strings.Contains(a.body, c.want) ||
				!strings.Contains(a.body, `"id":7`) {
				t.Errorf("got %d %s, want %s", a.status, a.body, c.want)
			}
		})
	}
}

// TestAccept: RFC 9110 12.5.1. A client without Accept accepts anything, as in front of the adapter
// of the Go SDK.
func TestAccept(t *testing.T) {
	s := serve(t, "modern", Config{})
	if a := s.modern("tools/call", "echo", "", "Accept", ""); a.status != 200 {
		t.Errorf("2026-07-28: %d %s", a.status, a.body)
	}
	h := s.open("2025-11-25", "Accept", "")
	if a := s.post(toolCall("1", "echo", ""), h...); a.status != 200 {
		t.Errorf("2025-11-25: %d %s", a.status, a.body)
	}
}

func TestModernHeaders(t *testing.T) {
	s := serve(t, "modern", Config{})
	good, headers := modernCall("7", "tools/call", "echo", `"arguments":{"region":"eu"}`)
	with := func(more ...string) []string { return append(append(headers[:6:6], "Mcp-Param-Region", "eu"), more...) }
	cases := []struct {
		name, body string
		header     []string
		status     int
		want       string
	}{
		{"all is well", good, with(), 200, "result"},
		{"RS-149: in Base64", good, with("Mcp-Param-Region", "=?base64?ZXU=?="), 200, "result"},
		{"RS-153: a header of no parameter", good, with("Mcp-Param-Other", "x"), 200, "result"},
		{"RS-146: no Mcp-Method", good, with("Mcp-Method", ""), 400, "-32020"},
		{"RS-146: another Mcp-Method", good, with("Mcp-Method", "TOOLS/CALL"), 400, "-32020"},
		{"RS-147: no Mcp-Name", good, with("Mcp-Name", ""), 400, "-32020"},
		{"RS-147: another Mcp-Name", good, with("Mcp-Name", "other"), 400, "-32020"},
		{"RS-151: no Mcp-Param", good, with("Mcp-Param-Region", ""), 400, "-32020"},
		{"RS-151: another Mcp-Param", good, with("Mcp-Param-Region", "us"), 400, "-32020"},
		{"RS-150: bad Base64", good, with("Mcp-Param-Region", "=?base64?ZXU?="), 400, "-32020"},
		{"RS-150: Base64 with bits to spare", good, with("Mcp-Param-Region", "=?base64?ZXV=?="), 400, "-32020"},
		{"RS-67: an id with a fraction", strings.Replace(good, `"id":7`, `"id":7.5`, 1), with(), 400, "-32700"},
		{"RS-151: a Mcp-Param without argument", strings.Replace(good, `"region":"eu"`, ``, 1), with(), 400, "-32020"},
		{"RS-144: another version in the body", strings.Replace(good, "2026-07-28", "2025-11-25", 1), with(), 400,
			"-32020"},
		{"RS-138: no version in the body", strings.Replace(good, "protocolVersion", "x", 1), with(), 400, "-32602"},
		{"RS-138: no capabilities in the body", strings.Replace(good, "clientCapabilities", "x", 1), with(), 400,
			"-32602"},
		{"RS-142: a version to come", strings.Replace(good, "2026-07-28", "2027-01-01", 1),
			with("Mcp-Protocol-Version", "2027-01-01"), 400, "-32022"},
		{"RS-142: a draft without the headers of 2026-07-28", strings.Replace(good, "2026-07-28", "DRAFT-2026-v1", 1),
			with("Mcp-Protocol-Version", "DRAFT-2026-v1", "Mcp-Method", ""), 400, "-32022"},
		{"RS-142: no version at all", `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`,
			with("Mcp-Protocol-Version", "not-a-version", "Mcp-Method", ""), 400, "-32022"},
		{"RS-137: a batch", "[" + good + "]", with(), 400, "-32600"},
		{"RS-137: a response", `{"jsonrpc":"2.0","id":7,"result":{}}`, with(), 400, "-32600"},
		{"RS-154: a notification", `{"jsonrpc":"2.0","method":"notifications/x"}`, with("Mcp-Method", ""), 202, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := s.post(c.body, c.header...)
			if a.status != c.status || !strings.Contains(a.body, c.want) {
				t.Errorf("got %d %s, want %d with %q", a.status, a.body, c.status, c.want)
			}
			if c.status == 400 && !strings.HasPrefix(c.name, "RS-137") &&
				!strings.HasPrefix(c.name, "RS-67") && !strings.Contains(a.body, `"id":7`) {
				t.Errorf("RS-155: the id is missing: %s", a.body)
			}
		})
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		if a, _ := s.do(t.Context(), method, "", headers...); a.status != 405 || a.header.Get("Allow") != "POST" {
			t.Errorf("RS-160: %s: %d", method, a.status)
		}
	}
}

// TestHeaderValues: RS-152. It also checks values that are not primitive.
func TestHeaderValues(t *testing.T) {
	for _, c := range []struct {
		header, body string
		want         bool
	}{
		{"42.0", "42", true}, {"42", "42", true}, {"43", "42", false}, {"x", "42", false}, {"1.5", "1.5", false},
		{"true", "true", true}, {"True", "true", false},
		{"", `""`, true}, {"9007199254740993", "9007199254740993", false}, {"{}", "{}", false}, {"null", "null", false},
		{"=?BASE64?eA==?=", `"x"`, false}, {"=?base64?eA==", `"=?base64?eA=="`, true},
	} {
		if got := equal(c.header, json.RawMessage(c.body)); got != c.want {
			t.Errorf("%q and %s: %v", c.header, c.body, got)
		}
	}
}

// TestGone: RS-164. The end of the connection reaches the program as a cancellation, which this
// program reports to all callers.
func TestGone(t *testing.T) {
	s := serve(t, "modern", Config{})
	s.modern("tools/list", "", "")
	ctx, cancel := context.WithCancel(t.Context())
	body, h := modernCall("3", "tools/call", "hang", "")
	go s.do(ctx, http.MethodPost, body, h...)
	s.mu.Lock()
	link := s.hubs[alice.Key()].link
	s.mu.Unlock()
	wait.Until(t, "the call is there", func() bool { return link.waiting() == 1 })
	cancel()
	wait.Until(t, "the call is gone", func() bool { return link.waiting() == 0 })
}

// TestShared checks that callers share one process and see nothing of each other.
func TestShared(t *testing.T) {
	s := serve(t, "good", Config{Shared: true})
	mine, theirs := s.open("2025-11-25"), s.open("2025-06-18", "Who", "bob")
	a, b := s.post(toolCall("1", "echo", ""), mine...).result(t), s.post(toolCall("1", "echo", ""), theirs...).result(t)
	if a["pid"] != b["pid"] {
		t.Error("there are two processes")
	}
	if strings.Contains(fmt.Sprint(a["env"]), "MCP_SUBJECT") {
		t.Error("a shared process got a user's identity")
	}
	hang := make(chan *answer)
	go func() { hang <- s.post(toolCall(`"h"`, "hang", ""), theirs...) }()
	wait.Until(t, "bob waits", func() bool { return s.sessionOf(theirs).link.waiting() == 1 })
	p := s.post(toolCall("2", "progress", `,"_meta":{"progressToken":"t"},"arguments":{"who":"alice"}`), mine...)
	if len(p.events) != 5 || !strings.Contains(p.events[1].data, `"progressToken":"t"`) {
		t.Errorf("events %q", p.events)
	}
	if strings.Contains(p.body, "secret of") {
		t.Error("a log line came although it might have been another's")
	}
	s.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"h"}}`, mine...)
	if s.sessionOf(theirs).link.waiting() != 1 {
		t.Error("alice has cancelled bob's call")
	}
	s.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"h"}}`, theirs...)
	if a := <-hang; strings.Contains(a.body, "secret of") {
		t.Error("bob has seen what alice's call has logged")
	}
	if q := s.post(toolCall("3", "ask", ""), mine...); !strings.Contains(q.body, `"heard":null`) {
		t.Errorf("a question of a shared program: %s", q.body)
	}
	s.mark("x://a", mine...)
	s.hear("x://a", mine...)
	s.mark("x://b", theirs...)
	if strings.Contains(s.hear("x://b", theirs...), "x://a") {
		t.Error("who has not subscribed hears of an update")
	}
}

// TestModernCrowdBeforeOlderProgram checks that concurrent requests share one process and one
// answer while the program's revision is still unknown.
func TestModernCrowdBeforeOlderProgram(t *testing.T) {
	s := serve(t, "good", Config{})
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			body, header := modernCall("1", "tools/list", "", "")
			if a, err := s.do(t.Context(), http.MethodPost, body, header...); err != nil || a.status != 400 {
				t.Errorf("got %+v, %v", a, err)
			}
		})
	}
	all.Wait()
	if n := strings.Count(s.log.String(), "started an MCP server"); n != 1 {
		t.Errorf("%d processes were started", n)
	}
}
