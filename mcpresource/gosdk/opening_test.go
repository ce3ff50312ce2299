package gosdk

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// whoAreYou is a tool that asks its client a question.
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

// TestOpening: RS-72 before a client is ready, it gets no messages that it does not expect.
func TestOpening(t *testing.T) {
	t.Run("RS-72 changes of lists wait, and come once", func(t *testing.T) {
		r := newRig(t, nil)
		var told atomic.Int32
		r.adapter.server.AddSendingMiddleware(func(send mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				result, err := send(ctx, method, req)
				if method == "notifications/tools/list_changed" {
					told.Add(1)
				}
				return result, err
			}
		})
		p := newPipeTo(t, r, nil)
		changes := func(name string) {
			before := told.Load()
			mcp.AddTool(r.adapter.server, &mcp.Tool{Name: name}, okTyped)
			wait.Until(t, "the SDK tells of the change", func() bool { return told.Load() > before })
			p.send(pingOne)
		}
		p.send(openOld)
		p.next()
		changes("one")
		if got := p.next(); !strings.Contains(got, `"id":11`) {
			t.Errorf("before: got %s, want the answer to ping alone", got)
		}
		changes("two")
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
			t.Error("no change was reported")
		}
	})
	t.Run("RS-72 sessions that never get ready are forgotten with their end", func(t *testing.T) {
		r := newRig(t, nil)
		for range 3 {
			id := r.ask(t, "alice-mcp", ask{body: opening("2025-11-25", "t")}).header.Get("Mcp-Session-Id")
			r.ask(t, "alice-mcp", ask{method: "DELETE", headers: hdr("Mcp-Session-Id", id)})
		}
		wait.Success(t, "no session is left", func() error {
			runtime.GC()
			r.adapter.openings.mu.Lock()
			defer r.adapter.openings.mu.Unlock()
			if left := len(r.adapter.openings.bySession); left > 0 {
				return fmt.Errorf("%d are left", left)
			}
			return nil
		})
	})
}

// TestKeepAlive: the SDK pings its clients, but clients of 2026-07-28 must not get requests.
func TestKeepAlive(t *testing.T) {
	run := func(name string, f func(*testing.T, *rig)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := mcp.NewServer(&mcp.Implementation{Name: "t", Version: "1"},
					&mcp.ServerOptions{KeepAlive: 10 * time.Second})
				mcp.AddTool(s, &mcp.Tool{Name: "slow"},
					func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
						wait.Advance(30 * time.Second) // a ping without an answer ends the session after 15 seconds
						return nil, nil, nil
					})
				r := newRig(t, nil)
				r.adapter = New(r.guard, s, nil)
				f(t, r)
			})
		})
	}
	run("RS-86 RS-161 by stdio", func(t *testing.T, r *rig) {
		p := newPipeTo(t, r, nil)
		p.send(modern("tools/call", `"name":"slow","arguments":{}`))
		if got := p.next(); strings.Contains(got, `"method":"ping"`) || !strings.Contains(got, `"result"`) {
			t.Errorf("got %s", got)
		}
	})
	run("RS-161 by HTTP", func(t *testing.T, r *rig) {
		r.Config.Handler = r.guard.Handler(r.adapter.HTTP())
		got := r.call(t, "alice-mcp", "slow", `{}`)
		if strings.Contains(got.text, `"method":"ping"`) || !strings.Contains(got.text, `"result"`) {
			t.Errorf("got %s", got.text)
		}
	})
	run("RS-74 clients of older revisions are pinged", func(t *testing.T, r *rig) {
		p := newPipeTo(t, r, nil)
		p.send(openOld)
		p.next()
		if got := p.next(); !strings.Contains(got, `"method":"ping"`) {
			t.Errorf("got %s", got)
		}
	})
}
