package mcpresource

import (
	"context"
	"net/http"
	"time"
)

// bodyTime is how long the body of a request may take to arrive.
const bodyTime = 30 * time.Second

// setBodyDeadline sets a deadline for the body, if there is one, so that no client holds a
// connection by sending slowly; with or without a token, because net/http waits for
// what a handler has left. It reports whether there is a deadline to lift, so that no
// stream ends at it. A shorter timeout of the server stays.
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

// liftBodyDeadline takes the deadline away.
func liftBodyDeadline(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // it could be set a moment ago
}

// writeTime is how long a client may take to read what is being written when its request ends.
const writeTime = 10 * time.Second

// unflushed is how many bytes of an answer net/http keeps to itself: to write less waits for no client.
const unflushed = 2 << 10

// mayWait is called before what can wait for a client that reads nothing. From then on a write is
// bounded once the request has ended: it would otherwise neither end with the token nor give back
// what the request holds. A timeout of the server, which bounds every write, stays.
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

// hurry sets a deadline for writes, because the request has ended.
func (w *watcher) hurry() {
	defer w.hurried.Done()
	// a writer without deadlines does not wait
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTime))
}

// close takes away what mayWait has set, so that the connection may be used again.
func (w *watcher) close() {
	if w.calm == nil || w.calm() {
		return
	}
	w.hurried.Wait()
	control := http.NewResponseController(w.ResponseWriter)
	_ = control.Flush() // net/http would do it without a deadline
	_ = control.SetWriteDeadline(time.Time{})
}
