//lint:file-ignore SA1019 logging is part of the protocol, deprecated as it is (SEP-2577)

package gosdk

import (
	"context"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// asksBack is a tool that asks its client a question, as in revisions with sessions, and logs. Its
// result is the outcome of the question.
func asksBack(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	text := "asked"
	if _, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "who are you?"}); err != nil {
		text = "refused: " + err.Error()
	}
	if err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "error", Data: "a remark"}); err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
}

// TestNothingIsAsked: in 2026-07-28 a server sends no requests, whatever its tools do, and log
// messages only to clients that ask for them.
func TestNothingIsAsked(t *testing.T) {
	tool := raw("asks-back", string(anyObject), asksBack)
	r := newRig(t, nil, tool)
	call := modern("tools/call", `"name":"asks-back","arguments":{}`)
	headers := hdr("Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "asks-back")
	withLogs := strings.Replace(call, `"_meta":{`, `"_meta":{"io.modelcontextprotocol/logLevel":"info",`, 1)

	t.Run("RS-161 RS-178 no request on a stream", func(t *testing.T) {
		got := r.ask(t, "alice-mcp", ask{body: call, headers: headers}).text
		if strings.Contains(got, `"method":"elicitation/create"`) || !strings.Contains(got, "refused: ") {
			t.Errorf("got %s", got)
		}
	})
	t.Run("RS-162 a log message only where logLevel is given", func(t *testing.T) {
		if got := r.ask(t, "alice-mcp", ask{body: call, headers: headers}).text; strings.Contains(got, "a remark") {
			t.Errorf("without: got %s", got)
		}
		got := r.ask(t, "alice-mcp", ask{body: withLogs, headers: headers}).text
		if !strings.Contains(got, "a remark") {
			t.Errorf("with: got %s", got)
		}
	})
	t.Run("RS-86 by stdio neither, and an answer is not read", func(t *testing.T) {
		p := newPipe(t, nil, tool)
		p.send(`{"jsonrpc":"2.0","id":77,"result":{}}`)
		p.send(call)
		if got := p.next(); !strings.Contains(got, "refused: ") {
			t.Errorf("got %s", got)
		}
	})
}
