package mcpresource

import (
	"context"
	"net/http"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/mcp"
)

// watcher looks at the headers of a response before they are sent: it learns the id
// of a new session, and keeps proxies from holding back a stream. It passes
// everything on at once.
type watcher struct {
	http.ResponseWriter
	guard   *Guard
	request *http.Request
	passage *passage
	end     context.CancelCauseFunc // of the handler
	status  int                     // what was sent, 0 before
	// replaced is set when the guard has answered in place of the handler.
	replaced bool
}

func (w *watcher) WriteHeader(status int) {
	if w.before(status); !w.replaced {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *watcher) Write(b []byte) (int, error) {
	if w.before(http.StatusOK); w.replaced {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}

// Flush implements http.Flusher, which some MCP libraries ask for by assertion.
func (w *watcher) Flush() {
	if w.before(http.StatusOK); w.replaced {
		return
	}
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
	if no := w.guard.attribute(ctx, w.passage, status, h.Get(mcp.HeaderSession)); no != nil {
		w.replace(no)
	}
}

// replace answers in place of the handler, of which nothing more is sent; a stream of it
// ends.
func (w *watcher) replace(no *refusal) {
	w.replaced, w.status = true, no.status
	h := w.Header()
	streams := strings.HasPrefix(h.Get("Content-Type"), "text/event-stream")
	for name := range h {
		if name != "Vary" && !strings.HasPrefix(name, "Access-Control-") {
			h.Del(name)
		}
	}
	w.guard.refuse(w.ResponseWriter, w.request, w.passage, no)
	if streams {
		_ = http.NewResponseController(w.ResponseWriter).Flush() // the answer is whole
		w.end(nil)
	}
}

// gone reports whether a DELETE has ended the session, or found none.
func (w *watcher) gone() bool {
	return !w.replaced && (w.status < 300 || w.status == http.StatusNotFound)
}
