package mcpresource

import (
	"context"
	"net/http"
	"strings"
)

// watcher looks at the headers of a response before they are sent: it learns the id
// of a new session, and keeps proxies from holding back a stream. It passes
// everything on at once.
type watcher struct {
	http.ResponseWriter
	guard   *Guard
	request *http.Request
	passage *passage
	status  int // what was sent, 0 before
}

func (w *watcher) WriteHeader(status int) {
	w.before(status)
	w.ResponseWriter.WriteHeader(status)
}

func (w *watcher) Write(b []byte) (int, error) {
	w.before(http.StatusOK)
	return w.ResponseWriter.Write(b)
}

// Flush implements http.Flusher, which some MCP libraries ask for by assertion.
func (w *watcher) Flush() {
	w.before(http.StatusOK)
	_ = http.NewResponseController(w.ResponseWriter).Flush() // a writer that cannot flush has nothing buffered
}

// Unwrap lets http.ResponseController reach the writer below.
func (w *watcher) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *watcher) before(status int) {
	if w.status != 0 || status < http.StatusOK { // 1xx come before the answer
		return
	}
	w.status = status
	h, ctx := w.Header(), w.request.Context()
	if strings.HasPrefix(h.Get("Content-Type"), "text/event-stream") {
		h.Set("X-Accel-Buffering", "no")
	}
	if w.passage.claimed && status == http.StatusNotFound {
		w.forget(ctx)
		return
	}
	id := h.Get("Mcp-Session-Id")
	if id == "" {
		return
	}
	if err := w.guard.bind(ctx, w.passage, id); err != nil {
		w.guard.c.Logger.WarnContext(ctx, "session not bound", "error", err)
	}
}

// forget takes back the claim to a session that the server does not know either, or
// invented ids would fill the table.
func (w *watcher) forget(ctx context.Context) {
	if err := w.guard.c.Sessions.Release(ctx, w.passage.session); err != nil {
		w.guard.c.Logger.WarnContext(ctx, "session not released", "error", err)
	}
}
