package gosdk

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// whoAreYou asks its client who is there.
func whoAreYou(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	got, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "who?", RequestedSchema: anyObject})
	if err != nil {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "refused: " + err.Error()}}}, nil
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "they " + got.Action}}}, nil
}

const (
	ready     = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	canAnswer = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
		`"capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`
	callWho = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"who","arguments":{}}}`
)

// TestOpening: RS-72 until a client has said that it is ready, nothing is sent that it does not expect.
func TestOpening(t *testing.T) {
	changes := func(p *pipe, r *rig, name string) { // the SDK waits 10 ms for more changes
		mcp.AddTool(r.adapter.server, &mcp.Tool{Name: name}, okTyped)
		time.Sleep(100 * time.Millisecond)
		p.send(pingOne)
	}
	t.Run("RS-72 changes of lists wait, and come once", func(t *testing.T) {
		r := newRig(t, nil)
		p := newPipeTo(t, r, nil)
		p.send(openOld)
		p.next()
		changes(p, r, "one")
		if got := p.next(); !strings.Contains(got, `"id":11`) {
			t.Errorf("before: got %s, want the answer to ping alone", got)
		}
		changes(p, r, "two")
		if got := p.next(); !strings.Contains(got, `"id":11`) {
			t.Errorf("before: got %s, want the answer to ping alone", got)
		}
		p.send(ready)
		if got := p.next(); !strings.Contains(got, "notifications/tools/list_changed") {
			t.Errorf("after: got %s, want the change", got)
		}
		p.send(pingOne)
		if got := p.next(); !strings.Contains(got, `"id":11`) {
			t.Errorf("once: got %s", got)
		}
		mcp.AddTool(r.adapter.server, &mcp.Tool{Name: "three"}, okTyped)
		if got := p.next(); !strings.Contains(got, "notifications/tools/list_changed") {
			t.Errorf("then: got %s", got)
		}
	})
	t.Run("RS-72 a question waits", func(t *testing.T) {
		p := newPipe(t, nil, raw("who", string(anyObject), whoAreYou))
		p.send(canAnswer)
		p.next()
		p.send(callWho)
		p.send(pingOne)
		if got := p.next(); !strings.Contains(got, `"id":11`) {
			t.Errorf("before: got %s, want the answer to ping alone", got)
		}
		p.send(ready)
		if got := p.next(); !strings.Contains(got, "elicitation/create") {
			t.Errorf("after: got %s, want the question", got)
		}
	})
	t.Run("RS-72 and is refused when the client does not get ready", func(t *testing.T) {
		r := newRig(t, nil, raw("who", string(anyObject), whoAreYou))
		r.adapter.openings.patience = time.Millisecond
		p := newPipeTo(t, r, nil)
		p.send(canAnswer)
		p.next()
		p.send(callWho)
		if got := p.next(); !strings.Contains(got, "refused: ") || !strings.Contains(got, "notifications/initialized") {
			t.Errorf("got %s", got)
		}
	})
	t.Run("RS-72 by HTTP, with the client of the SDK", func(t *testing.T) {
		r := newRig(t, nil, raw("who", string(anyObject), whoAreYou))
		changed := make(chan struct{}, 10)
		c := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, &mcp.ClientOptions{
			ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
			},
			ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
		})
		session, err := c.Connect(t.Context(),
			&mcp.StreamableClientTransport{Endpoint: r.URL + "/mcp", HTTPClient: r.client("alice-mcp-deep")},
			&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		got, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "who", Arguments: map[string]any{}})
		if err != nil || got.Content[0].(*mcp.TextContent).Text != "they accept" {
			t.Errorf("got %v %v", got, err)
		}
		mcp.AddTool(r.adapter.server, &mcp.Tool{Name: "later"}, okTyped)
		select {
		case <-changed:
		case <-time.After(time.Minute):
			t.Error("no change was told")
		}
	})
	t.Run("RS-72 sessions that never get ready are forgotten with their end", func(t *testing.T) {
		r := newRig(t, nil)
		for range 3 {
			id := r.ask(t, "alice-mcp", ask{body: opening("2025-11-25", "t")}).header.Get("Mcp-Session-Id")
			r.ask(t, "alice-mcp", ask{method: "DELETE", headers: hdr("Mcp-Session-Id", id)})
		}
		for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			runtime.GC()
			r.adapter.openings.mu.Lock()
			left := len(r.adapter.openings.bySession)
			r.adapter.openings.mu.Unlock()
			if left == 0 {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%d are left", left)
			}
		}
	})
}

// TestKeepAlive: the SDK pings whoever is there, but clients of 2026-07-28 are asked nothing.
func TestKeepAlive(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "t", Version: "1"},
		&mcp.ServerOptions{KeepAlive: 500 * time.Millisecond}) // a request that has not been read by then is pinged
	mcp.AddTool(s, &mcp.Tool{Name: "slow"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			time.Sleep(900 * time.Millisecond) // a ping without an answer ends the session after 750
			return nil, nil, nil
		})
	r := newRig(t, nil)
	r.adapter = New(r.guard, s, nil)
	t.Run("RS-86 RS-161 by stdio", func(t *testing.T) {
		p := newPipeTo(t, r, nil)
		p.send(modern("tools/call", `"name":"slow","arguments":{}`))
		if got := p.next(); strings.Contains(got, `"method":"ping"`) || !strings.Contains(got, `"result"`) {
			t.Errorf("got %s", got)
		}
	})
	t.Run("RS-161 by HTTP", func(t *testing.T) {
		r.Config.Handler = r.guard.Handler(r.adapter.HTTP())
		got := r.call(t, "alice-mcp", "slow", `{}`)
		if strings.Contains(got.text, `"method":"ping"`) || !strings.Contains(got.text, `"result"`) {
			t.Errorf("got %s", got.text)
		}
	})
	t.Run("RS-74 clients of older revisions are pinged", func(t *testing.T) {
		p := newPipeTo(t, r, nil)
		p.send(openOld)
		p.next()
		if got := p.next(); !strings.Contains(got, `"method":"ping"`) {
			t.Errorf("got %s", got)
		}
	})
}
