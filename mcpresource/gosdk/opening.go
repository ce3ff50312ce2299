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

// openings holds the sessions whose client sent initialize but not yet notifications/initialized.
// Until then a server must send only pings, log messages and responses (MCP up to 2025-11-25,
// "Lifecycle", RS-72). The SDK does not enforce that. Entries are removed when the garbage
// collector frees a session, because the SDK does not report its end.
type openings struct {
	patience time.Duration // readyTime, except in tests

	mu        sync.Mutex // guards bySession and its elements
	bySession map[weak.Pointer[mcp.ServerSession]]*unready
}

type unready struct {
	ready chan struct{} // closed when the client is ready
	kept  map[string]func()
}

// readyTime is how long a question waits for the client to be ready. Its notification is a separate
// request, which may arrive later.
const readyTime = 5 * time.Second

var errNotReady = errors.New("gosdk: the client has not sent notifications/initialized, so it is asked nothing")

func newOpenings() *openings {
	return &openings{patience: readyTime, bySession: map[weak.Pointer[mcp.ServerSession]]*unready{}}
}

// begin records that a client opens its session. The returned function undoes that if the server
// refuses.
func (o *openings) begin(s *mcp.ServerSession) (end func(refused bool)) {
	key := weak.Make(s)
	o.mu.Lock()
	defer o.mu.Unlock()
	if s.InitializeParams() != nil || o.bySession[key] != nil { // the SDK rejects a second one
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

// complete records that the client is ready, and sends the messages held back for it.
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
		go send() // the SDK reads nothing in the meantime
	}
}

// hold decides whether to send a message to a client that may not be ready. If now is false, it is
// not sent or is sent later. Changes of a list are held back, once for each list. Questions wait.
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
	case own == nil: // before initialize the client has not seen a list
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

// keepsAlive rejects the SDK's keep-alive pings for revisions without pings (RS-161). The SDK then
// stops them.
func keepsAlive(s *mcp.ServerSession, method string) error {
	p := s.InitializeParams()
	if method == "ping" && p != nil && protocol.IsStateless(p.ProtocolVersion) {
		return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Clients of this revision are asked nothing."}
	}
	return nil
}
