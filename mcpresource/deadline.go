package mcpresource

import (
	"context"
	"net/http"
	"time"
)

// bodyTime is the maximum time for a request body to arrive.
const bodyTime = 30 * time.Second

// setBodyDeadline sets a deadline for the body, if there is one, so that no client holds a
// connection by sending slowly. It applies with or without a token, because net/http reads the rest
// of the body after the handler returns. It reports whether it set a deadline, which must be lifted
// before a stream. A shorter timeout of the server is kept.
func setBodyDeadline(w http.ResponseWriter, r *http.Request) bool {
	if r.ContentLength == 0 {
		return false
	}
	wait := bodyTime
	if s, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && s.ReadTimeout > 0 {
		wait = min(wait, s.ReadTimeout)
	}
	return http.NewResponseController(w).SetReadDeadline(time.Now().Add(wait)) == nil
}

func liftBodyDeadline(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // setting it worked a moment ago
}

// writeTime is how long a client may take to read pending output when its request ends.
const writeTime = 10 * time.Second

// unflushed is the number of response bytes that net/http buffers: a smaller write never blocks.
const unflushed = 2 << 10

// mayWait is called before writes that can block on a client that does not read. From then on, the
// end of the request limits the time of a write. Otherwise the write would outlive the token and
// keep the request's resources. A write timeout of the server, which limits every write, is kept.
func (w *watcher) mayWait() {
	if w.waits {
		return
	}
	w.waits = true
	if s, ok := w.ended.Value(http.ServerContextKey).(*http.Server); !ok || s.WriteTimeout <= 0 {
		w.hurried.Add(1)
		w.calm = context.AfterFunc(w.ended, w.hurry)
	}
}

// hurry sets a deadline for writes when the request has ended.
func (w *watcher) hurry() {
	defer w.hurried.Done()
	// without support for deadlines, writes do not block
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTime))
}

// close removes the deadline of mayWait, so that the connection can be reused.
func (w *watcher) close() {
	if w.calm == nil || w.calm() {
		return
	}
	w.hurried.Wait()
	control := http.NewResponseController(w.ResponseWriter)
	_ = control.Flush() // net/http would flush without a deadline
	_ = control.SetWriteDeadline(time.Time{})
}
