package assembly

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// kept is an audit.Log that collects its entries.
type kept []string

func (k *kept) Add(_ context.Context, event string, attrs []slog.Attr) {
	*k = append(*k, fmt.Sprint(event, " ", attrs))
}

// TestKeepCall checks that a tool call is in the audit log with its caller and the digest of its
// arguments, but not the arguments (OB-05). Calls of other methods or unknown callers are not.
func TestKeepCall(t *testing.T) {
	var log kept
	p := Parts{Audit: audit.New(slog.New(slog.DiscardHandler)).Into(&log)}
	keep := p.keepCall("https://mcp.example.com/mcp")
	who := &mcpresource.Principal{Subject: "usr_1", ClientID: "app", TokenID: "tok_1"}
	for _, e := range []mcpresource.CallEvent{
		{Method: "tools/list", Principal: who},
		{Method: "tools/call", Name: "stolen"},
		{
			Method: "tools/call", Name: "read", Principal: who, Outcome: mcpresource.OutcomeOK, Digest: "abc",
			Arguments: []byte(`{"secret":1}`), RemoteAddr: "192.0.2.1:5",
		},
	} {
		keep(t.Context(), e)
	}
	const want = "tool.called [user=usr_1 client_id=app resource=https://mcp.example.com/mcp tool=read outcome=ok " +
		"arguments_digest=abc jti=tok_1 at=0001-01-01 00:00:00 +0000 UTC remote=192.0.2.1]"
	if len(log) != 1 || log[0] != want {
		t.Errorf("got  %q\nwant %s", log, want)
	}
}

// TestBeginCall checks that, with audit.required, a call continues once its start is in the audit
// log, and fails if it cannot be written (OB-06). Other methods do not wait.
func TestBeginCall(t *testing.T) {
	var log kept
	slow := &slowLog{Log: &log}
	p := Parts{Audit: audit.New(slog.New(slog.DiscardHandler)).Into(slow)}
	begin := p.beginCall("https://mcp.example.com/mcp")
	who := &mcpresource.Principal{Subject: "usr_1", ClientID: "app", TokenID: "tok_1"}
	call := mcpresource.Operation{Method: "tools/call", Name: "read", Arguments: []byte(`{"secret": 1}`)}
	if err := begin(t.Context(), who, mcpresource.Operation{Method: "tools/list"}); err != nil || len(log) != 0 {
		t.Errorf("tools/list: got %v, %q", err, log)
	}
	if err := begin(t.Context(), who, call); err != nil {
		t.Errorf("a call: got %v", err)
	}
	const want = "tool.begun [user=usr_1 client_id=app resource=https://mcp.example.com/mcp tool=read " +
		"arguments_digest=303c81734ca9f66015accf5ba61d1d8f434c4bd5c4f31d3226b44cca229e765b jti=tok_1]"
	if len(log) != 1 || log[0] != want {
		t.Errorf("got  %q\nwant %s", log, want)
	}
	slow.err = errors.New("the store is away")
	if err := begin(t.Context(), who, call); !errors.Is(err, mcpresource.ErrUnavailable) || !errors.Is(err, slow.err) {
		t.Errorf("a call that cannot be written: got %v", err)
	}
}

// slowLog is an audit.Log that delays its entries.
type slowLog struct {
	audit.Log
	err error
}

func (s *slowLog) Add(ctx context.Context, event string, attrs []slog.Attr) {
	s.Log.Add(ctx, event, attrs)
	audit.Await(ctx, func(context.Context) error { return s.err })
}
