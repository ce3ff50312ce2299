package mcpresource

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestCalls(t *testing.T) {
	var calls []CallEvent
	listening := func(change func(*Config)) *rig {
		calls = nil
		return newRig(t, func(c *Config) {
			c.Calls = func(_ context.Context, e CallEvent) { calls = append(calls, e) }
			if change != nil {
				change(c)
			}
		})
	}
	one := func(t *testing.T) CallEvent {
		t.Helper()
		if len(calls) != 1 {
			t.Fatalf("got %d events: %+v", len(calls), calls)
		}
		return calls[0]
	}
	t.Run("SP-07 who, by what, what, how it ended, how long", func(t *testing.T) {
		r := listening(nil)
		r.next = func(http.ResponseWriter, *http.Request) { r.now = r.now.Add(3 * time.Second) }
		began := r.now
		r.call("alice", tool("read"))
		e := one(t)
		if p := e.Principal; p.Subject != "alice" || p.ClientID != "app" || p.TokenID != "jti" ||
			p.Issuer != authServer {
			t.Errorf("who: %+v", p)
		}
		if e.Method != "tools/call" || e.Name != "read" || e.Outcome != "ok" || e.Status != 200 ||
			e.Duration != 3*time.Second || !e.Time.Equal(began) || e.RemoteAddr == "" {
			t.Errorf("what: %+v", e)
		}
		if e.Arguments != nil {
			t.Errorf("RS-191 the arguments: %s", e.Arguments)
		}
	})
	t.Run("OB-07 how long the guard took to decide", func(t *testing.T) {
		var r *rig
		r = newRig(t, func(c *Config) {
			c.Check = func(context.Context, *Principal, Operation) error {
				r.now = r.now.Add(2 * time.Second)
				return nil
			}
		})
		r.next = func(http.ResponseWriter, *http.Request) { r.now = r.now.Add(time.Minute) }
		r.call("alice", tool("read"))
		if len(r.events) != 1 || r.events[0].Outcome != OutcomeAllowed || r.events[0].Took != 2*time.Second {
			t.Errorf("got %+v", r.events)
		}
	})
	t.Run("SP-07 arguments when asked", func(t *testing.T) {
		r := listening(func(c *Config) { c.CallArguments = true })
		if r.call("alice", tool("read")); string(one(t).Arguments) != `{"a":1}` {
			t.Errorf("got %s", calls[0].Arguments)
		}
	})
	t.Run("SP-07 of the URI of a resource, what is no secret", func(t *testing.T) {
		var log bytes.Buffer
		for _, uri := range []string{
			"https://bob:hunter2@open.example/x?key=s3cret#s3cret", "file:///public/a?key=s3cret", "note:s3cret", "%s3cret",
		} {
			for _, method := range []string{"resources/read", "resources/subscribe", "resources/unsubscribe"} {
				body, _ := json.Marshal(map[string]any{
					"jsonrpc": "2.0", "id": 1, "method": method, "params": map[string]any{"uri": uri},
				})
				r := newRig(t, func(c *Config) {
					c.Calls = LogCalls(slog.New(slog.NewJSONHandler(&log, nil)))
					c.Logger = slog.New(slog.NewJSONHandler(&log, nil))
				})
				r.call("alice", string(body))
				for _, e := range r.events {
					fmt.Fprintf(&log, "%+v %v\n", e.Operations, e.Err)
				}
			}
		}
		if text := log.String(); strings.Contains(text, "s3cret") || strings.Contains(text, "hunter2") ||
			!strings.Contains(text, "file:///public/a?...") {
			t.Errorf("got %s", text)
		}
	})
	for _, tt := range []struct {
		name, token, body, outcome string
		status, events             int
		change                     func(*Config)
		next                       http.HandlerFunc
	}{
		{"SP-07 RS-35 a scope that lacks", "alice", tool("write_file"), "insufficient_scope", 403, 1, nil, nil},
		{"SP-07 denied", "alice", tool("danger"), "insufficient_scope", 403, 1, nil, nil},
		{"SP-07 too often", "alice", "[" + tool("read") + "," + tool("read") + "]", "limited", 429, 2,
			func(c *Config) { c.Limits.Calls = Rate{PerSecond: 1, Burst: 1} }, nil},
		{"SP-07 the server's own error", "alice", tool("read"), "error", 418, 1, nil,
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(418) }},
		{"SP-07 without a token, in public", "", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "ok", 200, 1, nil, nil},
		{"SP-07 the result of a completion is not the audit's", "alice",
			`{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"hello"}}}`,
			"ok", 200, 1, nil, nil},
		{"SP-07 nor is an answer", "alice", `{"jsonrpc":"2.0","id":1,"result":{}}`, "", 0, 0, nil, nil},
		{"SP-07 nor an unreadable body", "alice", `{`, "", 0, 0, nil, nil},
		{"SP-07 the handler reports itself", "alice", tool("read"), "", 0, 0, nil,
			func(_ http.ResponseWriter, r *http.Request) { TakeCalls(r.Context()) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := listening(tt.change)
			r.next = tt.next
			if tt.token == "" {
				r.do("POST", "/mcp", tt.body)
			} else {
				r.call(tt.token, tt.body)
			}
			if len(calls) != tt.events ||
				tt.events > 0 && (string(calls[0].Outcome) != tt.outcome || calls[0].Status != tt.status) {
				t.Errorf("got %+v", calls)
			}
		})
	}
	t.Run("SP-07 one that breaks off", func(t *testing.T) {
		r := listening(nil)
		r.next = func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
		func() {
			defer func() { recover() }()
			r.call("alice", tool("read"))
		}()
		if one(t).Outcome != "aborted" {
			t.Errorf("got %+v", calls[0])
		}
	})
	t.Run("SP-07 an adapter says more", func(t *testing.T) {
		r := listening(nil)
		r.next = func(_ http.ResponseWriter, req *http.Request) {
			TakeCalls(req.Context())
			r.Report(req.Context(),
				CallEvent{Method: "tools/call", Name: strings.Repeat("n", 300),
					Arguments: json.RawMessage(`{"secret":1}`), Outcome: "tool_error", Duration: time.Second})
		}
		r.call("alice", tool("read"))
		if e := one(t); e.Outcome != "tool_error" || e.Principal.Subject != "alice" || e.Arguments != nil ||
			len(e.Name) > 260 || !e.Time.Equal(r.now.Add(-time.Second)) {
			t.Errorf("got %+v", e)
		}
	})
}

func TestLogCalls(t *testing.T) {
	var out bytes.Buffer
	r := newRig(t, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&out, nil)) })
	r.call("alice", tool("read"))
	line := out.String()
	for _, want := range []string{
		"msg=call", "method=tools/call", "outcome=ok", "status=200", "user=alice", "tool=read", "remote=192.0.2.1 ",
		"client_id=app", "jti=jti", "issuer=" + authServer,
	} {
		if !strings.Contains(line, want) {
			t.Errorf("SP-07: %s is not in %s", want, line)
		}
	}
	if strings.Contains(line, "Bearer") || strings.Contains(line, "arguments") {
		t.Errorf("RS-191 SP-28: got %s", line)
	}
	out.Reset()
	if r.call("alice",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a\nlevel=ERROR msg=forged"}}`); strings.Count(out.String(),
		"\n") != 1 {
		t.Errorf("RS-191 a name made a second line: %s", out.String())
	}
}
