package gosdk

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	protocol "github.com/mcp-authd/mcp-authd/internal/mcp"
)

// FuzzStdio sends arbitrary lines. None ends the connection, every response is one line of JSON,
// and every accepted request can be answered.
func FuzzStdio(f *testing.F) {
	for _, seed := range []string{
		openOld, callOld, `[` + pingOne + `,` + pingOne + `]`, `[1,null,{}]`, `{bad`,
		`{"jsonrpc":"2.0","id":-0,"method":"x","params":[]}`, `{"jsonrpc":"2.0","id":1e2,"method":"x"}`, "[[]]",
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":11}}`,
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, text string, batches bool) {
		var out bytes.Buffer
		c := &stdio{out: &out, most: 1 << 20, inflight: newInflight(), closed: make(chan struct{})}
		both := make(chan jsonrpc.Message, 1<<20)
		c.older, c.modern = &stdioConn{stdio: c, messages: both}, &stdioConn{stdio: c, messages: both}
		if batches {
			c.inflight.version = protocol.Rev20250326
		}
		for range 2 { // the second time its ids are in use
			if err := c.accept(t.Context(), line{text: []byte(text)}); err != nil {
				t.Fatalf("the connection ended: %v", err)
			}
		}
		close(both)
		for m := range both {
			if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
				answer := &jsonrpc.Response{ID: r.ID, Result: json.RawMessage(`{}`)}
				if err := c.older.Write(t.Context(), answer); err != nil {
					t.Fatal(err)
				}
			}
		}
		for l := range strings.Lines(out.String()) {
			if !json.Valid([]byte(l)) {
				t.Errorf("no JSON: %q", l)
			}
		}
		if len(c.inflight.calls) > 0 || len(c.inflight.muted) > 0 {
			t.Errorf("%d calls are still kept", len(c.inflight.calls))
		}
	})
}

// FuzzPlainText: whatever a tool returns, the output has no control characters, and text without
// them is unchanged.
func FuzzPlainText(f *testing.F) {
	for _, seed := range []string{
		"plain\n\ttext é", "\x1b[31mred\x1b[0m", "\x1b]8;;http://x\x07", "\x1b\x1b[[3131mm", "\u009b2J",
		"\x1bP\x1b\\", "a\r\nb\rc",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := plainText(s)
		if strings.IndexFunc(got, isControl) >= 0 {
			t.Errorf("got %q", got)
		}
		if strings.IndexFunc(s, isControl) < 0 && got != s {
			t.Errorf("%q became %q", s, got)
		}
	})
}
