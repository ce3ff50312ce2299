package stdio

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/gateway"
	"github.com/mcp-authd/mcp-authd/internal/gateway/lists"
	"github.com/mcp-authd/mcp-authd/internal/mcp"
)

const (
	maxKept   = 4 << 20 // bytes of a stream; the newest message is always kept
	keepAlive = 30 * time.Second
)

// stream is what one HTTP response, and the ones that resume it, say: the answers to the
// calls of a POST with what belongs to them, or a session's own messages.
type stream struct {
	id   string
	c    *Config
	ends bool // with the last answer; a session's own stream does not
	ids  bool // events have ids, so that they can be asked for again

	mu      sync.Mutex // guards the rest
	events  []saved    // kept; the first has number base
	base    int
	size    int
	sent    int // number of the first event that was not sent
	calls   int // without an answer
	closed  bool
	news    chan struct{} // closed, and made again, when something changes
	reader  chan struct{} // closed when another reader takes over, or it is gone; nil for none
	stays   time.Time     // until when the reader is not replaced
	endedAt time.Time
}

// saved is a message. Of a list, each reader is shown what it may use itself: who resumes a stream may have
// another token than the caller who began it.
type saved struct {
	text []byte // nil for the one that has none
	list bool
}

func (e saved) shownTo(ctx context.Context, shows gateway.Shows) ([]byte, error) {
	if !e.list || shows == nil {
		return e.text, nil
	}
	return lists.Message(e.text, func(k lists.Kind, name string, entry []byte) bool {
		return shows(ctx, k, name, entry)
	})
}

func newStream(id string, calls int, c *Config) *stream {
	return &stream{id: id, c: c, ends: calls > 0, ids: true, calls: calls, news: make(chan struct{})}
}

// deliver implements sink.
func (s *stream) deliver(f *frame, final bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if f != nil {
		s.add(saved{f.encode(), f.list})
	}
	if final {
		if s.calls--; s.calls == 0 && s.ends {
			s.closed, s.endedAt = true, s.c.Now()
		}
	}
	s.wake()
}

// prime puts an event without data first (MCP 2025-11-25, Streamable HTTP): a client that
// loses the connection before anything was said has an id to come back with.
func (s *stream) prime() { s.add(saved{}) }

func (s *stream) add(e saved) {
	s.events = append(s.events, e)
	s.size += len(e.text)
	for s.size > maxKept && len(s.events) > 1 {
		s.size -= len(s.events[0].text)
		s.events = s.events[1:]
		s.base++
	}
}

func (s *stream) wake() {
	close(s.news)
	s.news = make(chan struct{})
}

// close ends a stream whatever is missing.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed, s.endedAt = true, s.c.Now()
		s.wake()
	}
}

// over reports whether a stream has ended and since when.
func (s *stream) over() (time.Time, int, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.endedAt, s.size, s.closed
}

// readerStays is how long a reader stays that has replaced another: two clients of one session could end each other
// without a pause.
const readerStays = 5 * time.Second

// attach makes the caller the reader. The earlier reader stops, but not while it stays.
func (s *stream) attach(ctx context.Context) (until chan struct{}) {
	for ctx.Err() == nil {
		s.mu.Lock()
		earlier, left := s.reader, time.Until(s.stays)
		if earlier == nil || left <= 0 {
			defer s.mu.Unlock()
			if earlier != nil {
				close(earlier)
				s.stays = time.Now().Add(readerStays)
			}
			s.reader = make(chan struct{})
			return s.reader
		}
		s.mu.Unlock()
		timer := time.NewTimer(left)
		select {
		case <-earlier:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return nil // the client is gone
}

// detach ends the turn of a reader, and wakes those who wait for it.
func (s *stream) detach(reader chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reader != nil && s.reader == reader {
		close(reader)
		s.reader = nil
	}
}

// after returns the events from number n on, the number after them, and, when the stream
// has not ended, what to wait for.
func (s *stream) after(n int) (events []saved, first int, news <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first = max(n, s.base) // what is no longer kept is lost
	if first < s.base+len(s.events) {
		events = s.events[first-s.base:]
	}
	s.sent = max(s.sent, first+len(events))
	if !s.closed {
		news = s.news
	}
	return events, first, news
}

// unsent is where a reader begins that asks for nothing in particular.
func (s *stream) unsent() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// serve is the answer to a request as an event stream (RS-101). It writes the events from number n
// on, as they come, until the stream or ctx ends, or another reader takes over.
func (s *stream) serve(ctx context.Context, w http.ResponseWriter, n int, until <-chan struct{}) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	idle := time.NewTicker(keepAlive)
	defer idle.Stop()
	for {
		events, first, news := s.after(n)
		for i, e := range events {
			text, err := e.shownTo(ctx, s.c.Shows)
			if err != nil || s.write(w, first+i, text) != nil {
				return // the client is gone
			}
		}
		n = first + len(events)
		if control.Flush() != nil || news == nil {
			return
		}
		select {
		case <-news:
		case <-ctx.Done():
			return
		case <-until:
			_, _ = io.WriteString(w, mcp.ReplacedReader) // the client may be gone
			return
		case <-idle.C:
			if _, err := io.WriteString(w, ": \n\n"); err != nil {
				return
			}
		}
	}
}

func (s *stream) write(w io.Writer, n int, data []byte) error {
	var b []byte
	if s.ids {
		b = fmt.Appendf(b, "id: %s_%d\n", s.id, n)
	}
	if data != nil {
		b = append(b, "event: message\n"...)
	}
	b = append(append(append(b, "data: "...), data...), "\n\n"...)
	_, err := w.Write(b)
	return err
}

// position reads an event id.
func position(id string) (stream string, n int, ok bool) {
	i := strings.LastIndexByte(id, '_')
	if i < 0 {
		return "", 0, false
	}
	n, err := strconv.Atoi(id[i+1:])
	return id[:i], n, err == nil && n >= 0 && n < 1<<30
}
