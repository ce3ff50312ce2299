package mcpresource

import (
	"container/list"
	"context"
	"net/http"
	"strings"
	"sync"
	"time"
)

// SessionBinder remembers whom a session of the protocol belongs to. A server with
// several replicas and sticky sessions needs no other than the one in memory.
type SessionBinder interface {
	// Bind records the owner of a session that a response has just opened.
	Bind(ctx context.Context, sessionID, owner string) error
	// Owner returns the owner, and false for a session it does not know.
	Owner(ctx context.Context, sessionID string) (owner string, ok bool, err error)
	// Release forgets a session that its owner has ended.
	Release(ctx context.Context, sessionID string) error
}

const (
	memorySessions = 10_000
	sessionIdle    = 24 * time.Hour
)

// NewMemorySessions returns a binder that remembers up to size sessions (default
// 10,000), the most recently used ones, for a day after their last use. A forgotten
// session is not open to others: the MCP library holds its own record of the user.
func NewMemorySessions(size int) SessionBinder {
	if size <= 0 {
		size = memorySessions
	}
	return &memory{size: size, order: list.New(), byID: map[string]*list.Element{}}
}

type memory struct {
	size int

	mu    sync.Mutex // guards what follows
	order *list.List // of *binding, the most recently used first
	byID  map[string]*list.Element
}

type binding struct {
	id, owner string
	used      time.Time
}

func (m *memory) Bind(_ context.Context, id, owner string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.byID[id]; known {
		return nil // the first owner stays
	}
	m.byID[id] = m.order.PushFront(&binding{id, owner, time.Now()})
	for m.order.Len() > m.size {
		m.drop(m.order.Back())
	}
	return nil
}

func (m *memory) Owner(_ context.Context, id string) (string, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.byID[id]
	if !ok {
		return "", false, nil
	}
	b := e.Value.(*binding)
	if time.Since(b.used) > sessionIdle {
		m.drop(e)
		return "", false, nil
	}
	b.used = time.Now()
	m.order.MoveToFront(e)
	return b.owner, true, nil
}

func (m *memory) Release(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.byID[id]; ok {
		m.drop(e)
	}
	return nil
}

func (m *memory) drop(e *list.Element) {
	m.order.Remove(e)
	delete(m.byID, e.Value.(*binding).id)
}

// watcher looks at the headers of a response before they are sent: it learns the id
// of a new session, and keeps proxies from holding back a stream. It passes
// everything on at once.
type watcher struct {
	http.ResponseWriter
	guard   *Guard
	request *http.Request
	passage *passage
	sent    bool
}

func (w *watcher) WriteHeader(status int) {
	w.before()
	w.ResponseWriter.WriteHeader(status)
}

func (w *watcher) Write(b []byte) (int, error) {
	w.before()
	return w.ResponseWriter.Write(b)
}

// Flush implements http.Flusher, which some MCP libraries ask for by assertion.
func (w *watcher) Flush() {
	w.before()
	_ = http.NewResponseController(w.ResponseWriter).Flush() // a writer that cannot flush has nothing buffered
}

// Unwrap lets http.ResponseController reach the writer below.
func (w *watcher) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *watcher) before() {
	if w.sent {
		return
	}
	w.sent = true
	h := w.Header()
	if strings.HasPrefix(h.Get("Content-Type"), "text/event-stream") {
		h.Set("X-Accel-Buffering", "no")
	}
	id := h.Get("Mcp-Session-Id")
	if id == "" || w.passage.principal == nil {
		return
	}
	ctx := w.request.Context()
	if err := w.guard.c.Sessions.Bind(ctx, id, w.passage.principal.Key()); err != nil {
		w.guard.c.Logger.WarnContext(ctx, "session not bound", "error", err)
	}
}
