package assembly

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// kept is an audit.Log that holds what it was given.
type kept []string

func (k *kept) Add(_ context.Context, event string, attrs []slog.Attr) {
	*k = append(*k, fmt.Sprint(event, " ", attrs))
}

// TestKeepCall: OB-05. A call of a tool is in the audit log with who called and a digest of the
// arguments, without them; a call of another method, or of an unknown caller, is not.
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
