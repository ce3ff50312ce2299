package mcpresource

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/oauth"
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
	written int                     // bytes of the answer
	ended   context.Context         // of the handler
	waits   bool                    // see mayWait
	calm    func() bool             // takes away what hurry has set, unless it has begun; nil for nothing
	hurried sync.WaitGroup          // until that is over
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
	if w.written += len(b); w.written > unflushed {
		w.mayWait()
	}
	return w.ResponseWriter.Write(b)
}

// Flush implements http.Flusher, which some MCP libraries ask for by assertion.
func (w *watcher) Flush() {
	if w.before(http.StatusOK); w.replaced {
		return
	}
	w.mayWait()
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
	if strings.HasPrefix(first(h, "Content-Type"), "text/event-stream") {
		h.Set("X-Accel-Buffering", "no")
	}
	if refused := w.guard.attribute(ctx, w.passage, status, first(h, mcp.HeaderSession)); refused != nil {
		w.replace(refused)
	}
}

// replace answers in place of the handler, of which nothing more is sent; a stream of it
// ends.
func (w *watcher) replace(refused *refusal) {
	w.replaced, w.status = true, refused.status
	h := w.Header()
	streams := strings.HasPrefix(first(h, "Content-Type"), "text/event-stream")
	for name := range h {
		if name != "Vary" && !strings.HasPrefix(name, "Access-Control-") {
			h.Del(name)
		}
	}
	w.guard.refuse(w.ResponseWriter, w.request, w.passage, refused)
	if streams {
		_ = http.NewResponseController(w.ResponseWriter).Flush() // the answer is whole
		w.end(nil)
	}
}

// gone reports whether a DELETE has ended the session, or found none.
func (w *watcher) gone() bool {
	return !w.replaced && (w.status < 300 || w.status == http.StatusNotFound)
}

// conclude reports how a request ended that has passed the guard, and answers where the
// handler gave up in silence because the guard had ended its context.
func (g *Guard) conclude(ctx context.Context, w *watcher, finished bool) {
	r, p, cause := w.request, w.passage, context.Cause(ctx)
	if w.replaced {
		return // and has been reported
	}
	if refused := g.interrupted(cause); refused != nil && finished && w.status == 0 {
		refused.id = p.envelope.ID
		g.refuse(w.ResponseWriter, r, p, refused)
		return
	}
	outcome, status := OutcomeOK, w.status
	if finished && status == 0 {
		status = http.StatusOK // what net/http sends then
		if w.before(status); w.replaced {
			return
		}
	}
	switch {
	case !finished:
		outcome = OutcomeAborted
	case errors.Is(cause, errTimeout):
		outcome = OutcomeTimeout
	case endedEarly(ctx) != nil:
		outcome = OutcomeEnded
		g.record(r, p, Event{Outcome: outcome, Err: cause})
	case status >= http.StatusBadRequest:
		outcome = OutcomeError
	}
	g.called(r, p, outcome, status, nil)
}

// interrupted is the answer to a request that the guard has ended, nil for another.
func (g *Guard) interrupted(cause error) *refusal {
	switch {
	case cause == nil:
		return nil
	case errors.Is(cause, errTimeout):
		return &refusal{
			outcome: OutcomeTimeout, status: http.StatusGatewayTimeout, text: "The operation took too long.",
			err: cause,
		}
	case errors.Is(cause, ErrInvalidToken), errors.Is(cause, errExpired):
		return g.challenged(OutcomeEnded, http.StatusUnauthorized, oauth.InvalidToken,
			"The access token is not valid.", cause)
	case errors.Is(cause, ErrUnavailable):
		return &refusal{
			outcome: OutcomeEnded, status: http.StatusServiceUnavailable,
			text: "The access token cannot be checked now.", retry: time.Second, err: cause,
		}
	}
	return nil
}
