package gosdk

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"time"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	protocol "github.com/mcp-authd/mcp-authd/internal/mcp"
)

// openings are the sessions whose client has sent initialize and not yet said that it is ready, by
// notifications/initialized. Until then a server sends no more than pings, log messages, and what
// answers the client (MCP up to 2025-11-25, "Lifecycle", RS-72), to which the SDK does not hold
// itself. The table forgets sessions that end, of which the SDK says nothing.
type openings struct {
	patience time.Duration // readyTime, but in tests

	mu        sync.Mutex // guards bySession and what it points to
	bySession map[weak.Pointer[mcp.ServerSession]]*unready
}

type unready struct {
	ready chan struct{} // closed when the client is
	kept  map[string]func()
}

// readyTime is how long a question waits for the client to be ready: its notification comes by a
// request of its own, which may be overtaken.
const readyTime = 5 * time.Second

var errNotReady = errors.New("gosdk: the client has not sent notifications/initialized, so it is asked nothing")

func newOpenings() *openings {
	return &openings{patience: readyTime, bySession: map[weak.Pointer[mcp.ServerSession]]*unready{}}
}

// begin notes that a client opens its session. The function that it returns takes that back if the
// server refuses.
func (o *openings) begin(s *mcp.ServerSession) (end func(refused bool)) {
	key := weak.Make(s)
	o.mu.Lock()
	defer o.mu.Unlock()
	if s.InitializeParams() != nil || o.bySession[key] != nil { // the SDK refuses the second one
		return func(bool) {}
	}
	o.bySession[key] = &unready{ready: make(chan struct{}), kept: map[string]func(){}}
	runtime.AddCleanup(s, o.forget, key)
	return func(refused bool) {
		if refused {
			o.forget(key)
		}
	}
}

func (o *openings) forget(key weak.Pointer[mcp.ServerSession]) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.bySession, key)
}

// complete notes that the client is ready, and sends what was kept for it.
func (o *openings) complete(s *mcp.ServerSession) {
	o.mu.Lock()
	defer o.mu.Unlock()
	own := o.bySession[weak.Make(s)]
	if own == nil {
		return
	}
	delete(o.bySession, weak.Make(s))
	close(own.ready)
	for _, send := range own.kept {
		go send() // the SDK reads nothing meanwhile
	}
}

// hold decides what becomes of a message to a client that may not be ready: now is false for one
// that is not sent, or not yet. A change of a list is kept, once for each list; a question waits.
func (o *openings) hold(ctx context.Context, s *mcp.ServerSession, method string, send func()) (now bool, err error) {
	change := strings.HasSuffix(method, "/list_changed")
	question := method == "elicitation/create" || method == "sampling/createMessage" || method == "roots/list"
	if !change && !question {
		return true, nil
	}
	o.mu.Lock()
	own := o.bySession[weak.Make(s)]
	if own != nil && change {
		own.kept[method] = send
	}
	o.mu.Unlock()
	switch {
	case own == nil: // before initialize the client has seen no list
		return !change || s.InitializeParams() != nil, nil
	case change:
		return false, nil
	}
	late := time.NewTimer(o.patience)
	defer late.Stop()
	select {
	case <-own.ready:
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	case <-late.C:
		return false, errNotReady
	}
}

// keepsAlive refuses the pings by which the SDK looks whether a client is there, where the revision
// has none (RS-161): it then stops them.
func keepsAlive(s *mcp.ServerSession, method string) error {
	p := s.InitializeParams()
	if method == "ping" && p != nil && protocol.IsStateless(p.ProtocolVersion) {
		return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Clients of this revision are asked nothing."}
	}
	return nil
}
