package gosdk

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	protocol "github.com/mcp-authd/mcp-authd/internal/mcp"
)

// readers tracks the GET requests that read streams of sessions, one for each stream. A new one
// replaces the previous, whose client may have gone while a proxy keeps its connection. The SDK
// alone would answer 409 until then.
type readers struct {
	mu       sync.Mutex // guards byStream and replaced
	byStream map[string]*streamReader
}

type streamReader struct {
	w        http.ResponseWriter
	end      context.CancelFunc
	done     chan struct{} // closed when its handler has returned
	stays    time.Time     // until this time it cannot be replaced
	replaced bool
}

const (
	// readerStays is how long a reader that replaced another cannot be replaced. Otherwise two
	// clients of one session could end each other continuously.
	readerStays = 5 * time.Second
	// readerLeaves limits the last write of a replaced reader, and readerWait the wait for it.
	readerLeaves = 2 * time.Second
	readerWait   = 5 * time.Second
)

func newReaders() *readers { return &readers{byStream: map[string]*streamReader{}} }

// replace ends the previous reader and waits for it for a limited time. It returns r with a context
// that the next reader cancels, and a function to call when r has been served.
func (s *readers) replace(w http.ResponseWriter, r *http.Request) (*http.Request, func()) {
	stream := ""
	if last := r.Header.Get(protocol.HeaderLastEvent); last != "" {
		stream = last[:max(strings.LastIndexByte(last, '_'), 0)]
	}
	key := r.Header.Get(protocol.HeaderSession) + " " + stream
	ctx, end := context.WithCancel(r.Context())
	own := &streamReader{w: w, end: end, done: make(chan struct{})}
	s.mu.Lock()
	earlier := s.byStream[key]
	if now := time.Now(); earlier != nil {
		begins := now.Add(min(max(earlier.stays.Sub(now), 0), readerStays))
		own.stays = begins.Add(readerStays)
	}
	s.byStream[key] = own
	s.mu.Unlock()
	if earlier != nil {
		earlier.wait(ctx, time.Until(earlier.stays))
		s.leave(earlier)
		earlier.wait(ctx, readerWait)
	}
	return r.WithContext(ctx), func() {
		end()
		s.mu.Lock()
		own.w = nil
		replaced := own.replaced
		if s.byStream[key] == own {
			delete(s.byStream, key)
		}
		s.mu.Unlock()
		if replaced {
			sayGoodbye(w)
		}
		close(own.done)
	}
}

// wait returns when the handler has returned, after d, or when ctx ends.
func (r *streamReader) wait(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-r.done:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// leave ends a reader. It sets a deadline, because a write that waits for its client would delay
// the end.
func (s *readers) leave(r *streamReader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.w == nil {
		return
	}
	r.replaced = true
	_ = http.NewResponseController(r.w).SetWriteDeadline(time.Now().Add(readerLeaves)) // or writes do not block
	r.end()
}

// sayGoodbye asks the client of a replaced reader not to return immediately, and makes the
// connection reusable.
func sayGoodbye(w http.ResponseWriter) {
	if strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
		_, _ = io.WriteString(w, protocol.ReplacedReader) // the client may be gone
	}
	control := http.NewResponseController(w)
	_ = control.Flush()
	_ = control.SetWriteDeadline(time.Time{})
}
