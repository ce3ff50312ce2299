package mcpresource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/internal/stopping"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// watcher inspects the headers of a response before they are sent. It learns the id of a new
// session, and keeps proxies from buffering a stream. It never delays output.
type watcher struct {
	http.ResponseWriter
	guard   *Guard
	request *http.Request
	passage *passage
	end     context.CancelCauseFunc // of the handler
	status  int                     // 0 until the headers are sent
	written int                     // bytes of the body
	tail    [4]byte                 // the last bytes written
	ended   context.Context         // of the handler
	waits   bool                    // see mayWait
	calm    func() bool             // stops hurry unless it has started; may be nil
	hurried sync.WaitGroup          // until hurry has ended
	// replaced reports whether the guard has answered instead of the handler.
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
	w.remember(b)
	return w.ResponseWriter.Write(b)
}

// remember keeps the last bytes written, to know whether an event stream is between events.
func (w *watcher) remember(b []byte) {
	if n := len(b); n < len(w.tail) {
		copy(w.tail[:], w.tail[n:])
		copy(w.tail[len(w.tail)-n:], b)
		return
	}
	copy(w.tail[:], b[len(b)-len(w.tail):])
}

func (w *watcher) streams() bool {
	return strings.HasPrefix(first(w.Header(), "Content-Type"), "text/event-stream")
}

// between reports whether an event stream is between two events, so that another event can follow.
func (w *watcher) between() bool {
	tail := string(w.tail[:])
	return first(w.Header(), "Content-Encoding") == "" && (w.written == 0 ||
		strings.HasSuffix(tail, "\n\n") || strings.HasSuffix(tail, "\r\r") || strings.HasSuffix(tail, "\r\n\r\n"))
}

// lastWord answers a call on an event stream that ends without its response.
func (w *watcher) lastWord(refused *refusal) {
	if w.passage.listens || w.passage.envelope.ID == nil || !w.streams() || !w.between() {
		return
	}
	raw, _ := json.Marshal(refused.body())                                    // strings, and an id that was parsed
	_, _ = fmt.Fprintf(w.ResponseWriter, "event: message\ndata: %s\n\n", raw) // the client may be gone
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}

// Flush implements http.Flusher, which some MCP libraries require by a type assertion.
func (w *watcher) Flush() {
	if w.before(http.StatusOK); w.replaced {
		return
	}
	w.mayWait()
	_ = http.NewResponseController(w.ResponseWriter).Flush() // a writer that cannot flush buffers nothing
}

// Unwrap gives http.ResponseController access to the wrapped writer.
func (w *watcher) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *watcher) before(status int) {
	if w.status != 0 || status < http.StatusOK { // 1xx precede the response
		return
	}
	w.status = status
	h, ctx := w.Header(), w.request.Context()
	if w.streams() {
		h.Set("X-Accel-Buffering", "no")
	}
	if refused := w.guard.sessions.attribute(ctx, w.passage, status, first(h, mcp.HeaderSession)); refused != nil {
		w.replace(refused)
	}
}

// replace answers instead of the handler, whose further output is dropped. A stream of the handler
// ends.
func (w *watcher) replace(refused *refusal) {
	w.replaced, w.status = true, refused.status
	h := w.Header()
	streams := w.streams()
	for name := range h {
		if name != "Vary" && !strings.HasPrefix(name, "Access-Control-") {
			h.Del(name)
		}
	}
	w.guard.refuse(w.ResponseWriter, w.request, w.passage, refused)
	if streams {
		_ = http.NewResponseController(w.ResponseWriter).Flush() // the response is complete
		w.end(nil)
	}
}

// gone reports whether a DELETE ended the session or found none.
func (w *watcher) gone() bool {
	return !w.replaced && (w.status < 300 || w.status == http.StatusNotFound)
}

// conclude reports how a guarded request ended. If the handler returned without a response because
// its context had ended, it answers. A client that left gets no answer.
func (g *Guard) conclude(ctx context.Context, w *watcher, finished bool) {
	r, p, cause := w.request, w.passage, context.Cause(ctx)
	if w.replaced {
		return // already reported
	}
	if refused := g.interrupted(cause); refused != nil && finished {
		refused.id = p.envelope.ID
		switch {
		case w.status != 0:
			w.lastWord(refused)
		case refused.outcome == OutcomeAborted: // not a refusal
			if p.body != nil {
				w.status = refused.status
				g.write(w.ResponseWriter, r, p, refused)
			}
		default:
			g.refuse(w.ResponseWriter, r, p, refused)
			return
		}
	}
	outcome, status := OutcomeOK, w.status
	if finished && status == 0 {
		status = http.StatusOK // the default of net/http
		if w.before(status); w.replaced {
			return
		}
	}
	unanswered := !p.listens && (status >= http.StatusInternalServerError || w.streams())
	switch {
	case !finished:
		outcome = OutcomeAborted
	case errors.Is(cause, stopping.Err) && unanswered:
		outcome = OutcomeStopped
		g.record(r, p, Event{Outcome: outcome, Err: cause})
	case cause == context.Canceled && status >= http.StatusInternalServerError:
		outcome = OutcomeAborted
	case errors.Is(cause, errTimeout):
		outcome = OutcomeTimeout
	case endedEarly(ctx) != nil:
		outcome = OutcomeEnded
		g.record(r, p, Event{Outcome: outcome, Err: cause})
	case status >= http.StatusBadRequest:
		outcome = OutcomeError
	}
	g.called(r, p, CallEvent{Outcome: outcome, Status: status})
}

// interrupted returns the refusal for a request whose context has ended, or nil.
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
		return g.challenges.challenged(OutcomeEnded, http.StatusUnauthorized, oauth.InvalidToken,
			"The access token is not valid.", cause)
	case errors.Is(cause, ErrUnavailable):
		return &refusal{
			outcome: OutcomeEnded, status: http.StatusServiceUnavailable,
			text: "The access token cannot be checked now.", retry: time.Second, err: cause,
		}
	case errors.Is(cause, stopping.Err):
		return &refusal{
			outcome: OutcomeStopped, status: http.StatusServiceUnavailable, text: "The server is stopping.",
			retry: time.Second, err: cause,
		}
	}
	// The client has left, or the request was cancelled elsewhere without a reason.
	return &refusal{
		outcome: OutcomeAborted, status: http.StatusServiceUnavailable, text: "The request was ended.",
		retry: time.Second, err: cause,
	}
}
