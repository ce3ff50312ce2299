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

// hub is a process to which the gateway itself is the client, so that any number of requests can
// use it: those of one caller without sessions (MCP 2026-07-28), of a program that knows that
// revision, or, when it is shared, the sessions of all callers. A shared program is told of no
// capabilities, so it asks clients nothing; messages that it addresses to no caller go to those
// whom they concern.
type hub struct {
	server  *Server
	key     string // of the caller, "" for all
	person  string // the caller
	link    *link
	hello   json.RawMessage // the answer of a shared program to initialize
	mirrors mirrors

	mu       sync.Mutex // guards the rest
	sessions map[*session]bool
	gone     bool
	idle     usage
}

// legacy is the revision that the gateway speaks to programs that all callers share.
const legacy = mcp.Rev20251125

const greeting = 30 * time.Second // npx may have to fetch the program first

var (
	errHandshake = errors.New("the program does not answer as an MCP server")
	errLegacy    = errors.New("the program does not know MCP " + mcp.Rev20260728)
)

// one is a sink for a single answer.
type one chan frame

func (o one) deliver(f *frame, final bool) {
	if final && f != nil {
		o <- *f
	}
	if final {
		close(o)
	}
}

// exchange sends a request of the gateway's own and waits for the answer.
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

// meta is what each request of MCP 2026-07-28 says about itself.
func meta() map[string]any {
	return map[string]any{
		mcp.MetaVersion: mcp.Rev20260728, mcp.MetaClient: gatewayInfo, mcp.MetaCapabilities: struct{}{},
	}
}

// greet begins the conversation. A program that all callers share is initialized, for the sessions
// of all; any other has to know the stateless revision.
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

// welcome is what a shared program answers to the initialize of a session, without what
// the gateway does not carry: whose a task is cannot be told, and its id opens it.
func (h *hub) welcome() json.RawMessage {
	capabilities := members(at(h.hello, "capabilities"))
	if capabilities["tasks"] == nil {
		return h.hello
	}
	delete(capabilities, "tasks")
	raw, err := json.Marshal(capabilities)
	if err != nil {
		return h.hello // it was JSON
	}
	return with(h.hello, raw, "capabilities")
}

// discover asks whether the program knows the stateless revision. One that refuses, says
// nothing, or ends because initialize did not come first, does not (MCP 2026-07-28, stdio,
// "Backward Compatibility": no one code says so).
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

// ask implements peer. A program that asks although it was told of no capabilities gets an error.
func (h *hub) ask(f frame) {
	answer := failure(f.ID, mcp.CodeMethodNotFound, "This client answers no requests.")
	if f.Method == "ping" {
		answer = frame{ID: f.ID, Result: json.RawMessage("{}")}
	}
	_ = h.link.send(answer) // it does not read, or has ended
}

// note implements peer.
func (h *hub) note(f frame) {
	if f.Method == "notifications/tools/list_changed" {
		go h.mirrors.forget() // a question may be under way, which waits for what is read here
	}
	switch f.Method {
	case "notifications/message":
		h.remark(f)
		return
	case "notifications/tools/list_changed", "notifications/prompts/list_changed",
		"notifications/resources/list_changed", "notifications/resources/updated":
	default:
		return // of a task, for instance: whose it is cannot be told, and its id opens it
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

// remark is a log message. A request of 2026-07-28 gets one only if it asks for them (MCP
// 2026-07-28, Logging, RS-162). In a process that callers share it may be about any of their
// calls, so it goes to one only when no other has a call open, or has given one up that the
// program may be busy with still.
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

// busy reports whether sessions need the process.
func (h *hub) busy() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.sessions) > 0
}

// subscribed reports whether a session wants to hear of a resource.
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
