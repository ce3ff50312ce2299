package gosdk

import (
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestModernOnly: RS-88 RS-175 CL-51 a server without sessions tells a client with sessions its
// versions, and opens no session.
func TestModernOnly(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "t", Version: "1"},
		&mcp.ServerOptions{SupportedProtocolVersions: []string{"2026-07-28"}})
	mcp.AddTool(s, &mcp.Tool{Name: "open"}, okTyped)
	r := newRig(t, nil)
	r.adapter = New(r.guard, s, nil)
	r.Config.Handler = r.guard.Handler(r.adapter.HTTP())
	const data = `"data":{"supported":["2026-07-28"],"requested":"2025-11-25"}`
	t.Run("RS-175 CL-51 by HTTP", func(t *testing.T) {
		got := r.ask(t, "alice-mcp", ask{body: opening("2025-11-25", "t")})
		if got.status != 400 || got.code != -32022 || got.id != "1" || !strings.Contains(got.text, data) ||
			got.header.Get("Mcp-Session-Id") != "" {
			t.Errorf("got %d %s %v", got.status, got.text, got.header)
		}
		for s := range s.Sessions() {
			t.Errorf("a session is left: %s", s.ID())
		}
	})
	t.Run("RS-88 by stdio, where requests of 2026-07-28 go on", func(t *testing.T) {
		p := newPipeTo(t, r, nil)
		for range 2 {
			p.send(strings.Replace(openOld, "2024-11-05", "2025-11-25", 1))
			if got := p.next(); !strings.Contains(got, `"id":1`) || !strings.Contains(got, "-32022") ||
				!strings.Contains(got, data) {
				t.Errorf("got %s", got)
			}
			p.send(modern("tools/call", `"name":"open","arguments":{}`))
			if got := p.next(); !strings.Contains(got, "ran") {
				t.Errorf("got %s", got)
			}
		}
	})
	t.Run("RS-175 the client of the SDK says it", func(t *testing.T) {
		c := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, nil)
		_, err := c.Connect(t.Context(),
			&mcp.StreamableClientTransport{Endpoint: r.URL + "/mcp", HTTPClient: r.client("alice-mcp")},
			&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		if err == nil || !strings.Contains(err.Error(), "no revision with sessions") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("RS-175 and the newest has its way", func(t *testing.T) {
		if got := r.modern(t, "alice-mcp", "tools/list", "", ""); got.status != 200 || got.code != 0 {
			t.Errorf("got %d %s", got.status, got.text)
		}
	})
}
