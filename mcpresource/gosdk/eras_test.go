package gosdk

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// TestStdioEras: RS-85 one process serves clients of both eras, even interleaved.
func TestStdioEras(t *testing.T) {
	who := raw("who", string(anyObject), whoAreYou)
	sound := raw("sound", string(anyObject),
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.ResourceLink{URI: "x://y", Name: "why"}}}, nil
		})
	call := func(id, name string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + name + `","arguments":{}}}`
	}
	modernCall := func(name string) string { return modern("tools/call", `"name":"`+name+`","arguments":{}`) }
	wants := func(t *testing.T, p *pipe, line string, want ...string) {
		t.Helper()
		p.send(line)
		got := p.next()
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("got %s, want %s", got, w)
			}
		}
	}
	for _, tt := range []struct {
		name  string
		begin func(*testing.T, *pipe)
	}{
		{"RS-85 initialize comes first", func(t *testing.T, p *pipe) {
			p.open("2025-03-26")
			wants(t, p, modern("server/discover", ""), "supportedVersions", "2026-07-28", "2025-03-26")
		}},
		{"RS-85 initialize comes later", func(t *testing.T, p *pipe) {
			wants(t, p, modern("server/discover", ""), "supportedVersions", "2026-07-28", "2025-03-26")
			wants(t, p, modernCall("open"), "alice mcp")
			p.open("2025-03-26")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPipe(t, nil, who, sound)
			tt.begin(t, p)
			for range 2 {
				wants(t, p, call("5", "sound"), `"id":5`, `"type":"text"`) // RS-73: no links in 2025-03-26
				wants(t, p, modernCall("sound"), `"id":3`, `"resource_link"`, `"resultType":"complete"`)
				wants(t, p, "["+pingOne+","+pingTwo+"]", `[{`, `"id":11`, `"id":"12"`)
				wants(t, p, modern("ping", ""), "-32601")
			}
		})
	}
	t.Run("RS-85 RS-86 only the session of initialize is asked, whose answers are read", func(t *testing.T) {
		p := newPipe(t, nil, who)
		p.send(canAnswer)
		p.next()
		p.send(ready)
		wants(t, p, modernCall("who"), `"id":3`, "refused: ")
		p.send(callWho)
		asked := p.next()
		_, id, _ := strings.Cut(asked, `"id":`)
		if id, _, _ = strings.Cut(id, ","); !strings.Contains(asked, "elicitation/create") {
			t.Fatalf("got %s", asked)
		}
		wants(t, p, modernCall("open"), "alice mcp") // meanwhile
		wants(t, p, `{"jsonrpc":"2.0","id":`+id+`,"result":{"action":"decline"}}`, `"id":2`, "they decline")
	})
	t.Run("RS-67 RS-85 ids are those of the connection, not of an era", func(t *testing.T) {
		p := newPipe(t, nil).open("2025-11-25")
		p.send(strings.Replace(modernCall("wait"), `"id":3`, `"id":2`, 1))
		wants(t, p, call("2", "open"), `"id":null`, "in use")
	})
	t.Run("RS-85 RS-87 a call of either era can be cancelled", func(t *testing.T) {
		p := newPipe(t, nil).open("2025-11-25")
		for _, c := range []string{
			strings.Replace(call("7", "wait"), `"arguments":{}`, `"arguments":{},"_meta":{"progressToken":"t"}`, 1),
			strings.NewReplacer(`"id":3`, `"id":7`, `"_meta":{`, `"_meta":{"progressToken":"t",`).
				Replace(modernCall("wait")),
		} {
			p.send(c)
			p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
			for got := ""; !strings.Contains(got, "alice"); {
				p.send(call("7", "open")) // the id is free again once the call has ended
				if got = p.next(); !strings.Contains(got, "in use") && !strings.Contains(got, "alice") {
					t.Fatalf("got %s", got)
				}
			}
		}
	})
	t.Run("RS-83 RS-137 a batch has no requests of 2026-07-28", func(t *testing.T) {
		p := newPipe(t, nil).open("2025-03-26")
		wants(t, p, "["+pingOne+","+modernCall("open")+"]", `"id":null`, "-32600")
	})
	t.Run("RS-83 an id that is used again does not lose the revision", func(t *testing.T) {
		p := newPipe(t, nil).open("2025-03-26")
		wants(t, p, strings.Replace(pingOne, "11", "1", 1), `"id":1`)
		wants(t, p, "["+pingOne+"]", `[{`, `"id":11`)
	})
	t.Run("RS-86 what is about nothing that was asked opens no session", func(t *testing.T) {
		r := newRig(t, nil)
		p := newPipeTo(t, r, nil)
		p.send(`{"jsonrpc":"2.0","id":77,"result":{}}`)
		p.send(ready)
		p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
		wants(t, p, modernCall("open"), "alice mcp")
		n := 0
		for range r.adapter.server.Sessions() {
			n++
		}
		if n != 1 {
			t.Errorf("got %d sessions, want 1", n)
		}
	})
	for _, version := range []string{"2026-07-28", "2025-11-25", "2025-03-26"} {
		t.Run("RS-85 the client of the SDK: "+version, func(t *testing.T) {
			r := newRig(t, nil)
			in, stdin := io.Pipe()
			out, stdout := io.Pipe()
			ended := make(chan error, 1)
			go func() {
				ended <- RunStdio(t.Context(), r.adapter.server, &StdioOptions{
					Reader: in, Writer: stdout,
					Caller: func(context.Context) (*mcpresource.Principal, error) {
						return r.principal("alice", "mcp"), nil
					},
				})
			}()
			session, err := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, nil).Connect(t.Context(),
				&mcp.IOTransport{Reader: out, Writer: stdin}, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			got, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "open", Arguments: map[string]any{}})
			if err != nil || got.Content[0].(*mcp.TextContent).Text != "alice mcp" {
				t.Errorf("got %v %v", got, err)
			}
			if err := errors.Join(session.Close(), <-ended); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("RS-84 an end of ctx ends both", func(t *testing.T) {
		r := newRig(t, nil)
		in, stdin := io.Pipe()
		out, stdout := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- RunStdio(ctx, r.adapter.server, &StdioOptions{Reader: in, Writer: stdout}) }()
		go func() { _, _ = io.Copy(io.Discard, out) }()
		for _, line := range []string{openOld, modern("server/discover", "")} {
			if _, err := io.WriteString(stdin, line+"\n"); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		if err := <-ended; err != context.Canceled {
			t.Errorf("got %v", err)
		}
		for s := range r.adapter.server.Sessions() {
			t.Errorf("a session is left: %s", s.ID())
		}
	})
}
