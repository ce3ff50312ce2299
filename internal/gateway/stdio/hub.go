package stdio

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/mcp"
)

// hub is a process whose client is the gateway itself, so that any number of requests can use it.
// It serves the sessionless requests of one caller (MCP 2026-07-28), or, if the program is shared,
// the sessions of all callers. The gateway declares no capabilities to a shared program, so the
// program asks clients nothing. Messages without an addressee go to the callers that they concern.
type hub struct {
	server  *Server
	key     string // of the caller; "" for all
	person  string // the caller
	link    *link
	hello   json.RawMessage // result of initialize from a shared program
	mirrors mirrors

	mu       sync.Mutex // guards the fields below
	sessions map[*session]bool
	gone     bool
	idle     usage
}

// legacy is the revision that the gateway speaks with shared programs.
const legacy = mcp.Rev20251125

const greeting = 30 * time.Second // npx may have to download the program first

var (
	errHandshake = errors.New("the program does not answer as an MCP server")
	errLegacy    = errors.New("the program does not know MCP " + mcp.Rev20260728)
)

// one is a sink for one answer.
type one chan frame

func (o one) deliver(f *frame, final bool) {
	if final && f != nil {
		o <- *f
	}
	if final {
		close(o)
	}
}

// exchange sends the gateway's own request and waits for the answer.
func (h *hub) exchange(ctx context.Context, method string, params any) (frame, error) {
	raw, err := json.Marshal(params)
	if err != nil {
		return frame{}, err
	}
	answer := make(one, 1)
	scope := new(int)
	if _, err := h.link.call(frame{ID: json.RawMessage("0"), Method: method, Params: raw}, "", scope,
		answer); err != nil {
		return frame{}, err
	}
	select {
	case f, ok := <-answer:
		if !ok {
			return frame{}, errEnded
		}
		return f, nil
	case <-ctx.Done():
		h.link.drop(scope, "timeout")
		return frame{}, ctx.Err()
	}
}

var gatewayInfo = map[string]string{"name": "mcp-authd gateway", "version": "1"}

// meta returns the _meta object that MCP 2026-07-28 requires in each request.
func meta() map[string]any {
	return map[string]any{
		mcp.MetaVersion: mcp.Rev20260728, mcp.MetaClient: gatewayInfo, mcp.MetaCapabilities: struct{}{},
	}
}

// greet begins the conversation. It initializes a shared program for the sessions of all callers.
// Any other program must support the stateless revision.
func (h *hub) greet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, greeting)
	defer cancel()
	if !h.server.c.Shared {
		return h.discover(ctx)
	}
	f, err := h.exchange(ctx, "initialize",
		map[string]any{"protocolVersion": legacy, "capabilities": struct{}{}, "clientInfo": gatewayInfo})
	if err != nil {
		return err
	}
	if f.Error != nil || at(f.Result, "protocolVersion") == nil {
		return errHandshake
	}
	h.hello = f.Result
	return h.link.send(frame{Method: "notifications/initialized"})
}

// welcome returns a shared program's result of initialize, without the tasks capability. The
// gateway cannot know who owns a task, and the task's id gives access to its result.
func (h *hub) welcome() json.RawMessage {
	capabilities := members(at(h.hello, "capabilities"))
	if capabilities["tasks"] == nil {
		return h.hello
	}
	delete(capabilities, "tasks")
	raw, err := json.Marshal(capabilities)
	if err != nil {
		return h.hello // unreachable: it was parsed from JSON
	}
	return with(h.hello, raw, "capabilities")
}

// discover returns errLegacy if the program does not support the stateless revision. Such a program
// refuses, does not answer, or ends because initialize did not come first. No specific error code
// shows this (MCP 2026-07-28, stdio, "Backward Compatibility").
func (h *hub) discover(ctx context.Context) error {
	f, err := h.exchange(ctx, "server/discover", map[string]any{"_meta": meta()})
	if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, errEnded) {
		return err
	}
	var found struct {
		Supported []string `json:"supportedVersions"`
	}
	if err != nil || f.Error != nil || json.Unmarshal(f.Result, &found) != nil ||
		!slices.Contains(found.Supported, mcp.Rev20260728) {
		return errLegacy
	}
	return nil
}

// ask implements peer. A program must not send requests, since the gateway declares no
// capabilities, and gets an error.
func (h *hub) ask(f frame) {
	answer := failure(f.ID, mcp.CodeMethodNotFound, "This client answers no requests.")
	if f.Method == "ping" {
		answer = frame{ID: f.ID, Result: json.RawMessage("{}")}
	}
	_ = h.link.send(answer) // fails if the program does not read or has ended
}

// note implements peer.
func (h *hub) note(f frame) {
	if f.Method == "notifications/tools/list_changed" {
		go h.mirrors.forget() // in a goroutine, because a pending request may hold the lock and wait for this reader
	}
	switch f.Method {
	case "notifications/message":
		h.remark(f)
		return
	case "notifications/tools/list_changed", "notifications/prompts/list_changed",
		"notifications/resources/list_changed", "notifications/resources/updated":
	default:
		return // such as a task notification: its owner is unknown, and the id gives access to the task
	}
	uri := text(at(f.Params, "uri"))
	h.mu.Lock()
	var out []sink
	for x := range h.sessions {
		x.mu.Lock()
		if f.Method != "notifications/resources/updated" || x.subscribed[uri] {
			out = append(out, x.own)
		}
		x.mu.Unlock()
	}
	h.mu.Unlock()
	for _, o := range out {
		o.deliver(&f, false)
	}
}

// remark delivers a log message. A request of 2026-07-28 gets log messages only if it asks for them
// (MCP 2026-07-28, Logging, RS-162). In a shared process, a message may concern any caller. It is
// delivered only if no other caller has an open call, or an abandoned call that may still be
// running.
func (h *hub) remark(f frame) {
	if h.key != "" {
		if c := h.link.youngest(func(c *call) bool { return c.logs }); c != nil {
			c.out.deliver(&f, false)
		}
		return
	}
	c := h.link.youngest(func(*call) bool { return true })
	if c != nil && !h.link.abandoned(c.scope) &&
		h.link.find(func(other *call) bool { return other.scope != c.scope }) == nil {
		c.out.deliver(&f, false)
	}
}

// answered implements peer.
func (h *hub) answered(string, frame) {}

// lost implements peer.
func (h *hub) lost() {
	h.server.drop(h)
	h.mu.Lock()
	h.gone = true
	sessions := h.sessions
	h.sessions = nil
	h.mu.Unlock()
	for x := range sessions {
		x.close()
	}
}

func (h *hub) join(x *session) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gone {
		return false
	}
	h.sessions[x] = true
	return true
}

func (h *hub) leave(x *session) {
	h.mu.Lock()
	delete(h.sessions, x)
	h.mu.Unlock()
	h.link.drop(x, "the session has ended")
}

// busy reports whether sessions use the process.
func (h *hub) busy() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.sessions) > 0
}

// subscribed reports whether a session has subscribed to a resource.
func (h *hub) subscribed(uri string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for x := range h.sessions {
		x.mu.Lock()
		wants := x.subscribed[uri]
		x.mu.Unlock()
		if wants {
			return true
		}
	}
	return false
}
