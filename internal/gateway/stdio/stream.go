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
	maxKept   = 4 << 20 // bytes per stream; the newest message is always kept
	keepAlive = 30 * time.Second
)

// stream holds the events of one HTTP response and of the responses that resume it. They are the
// answers to the calls of a POST with related messages, or a session's own messages.
type stream struct {
	id   string
	c    *Config
	ends bool // ends after the last answer; a session's own stream does not
	ids  bool // events have ids, so that clients can resume

	mu      sync.Mutex // guards the fields below
	events  []saved    // kept; the first has number base
	base    int
	size    int
	sent    int // number of the first unsent event
	calls   int // unanswered calls
	closed  bool
	news    chan struct{} // closed and replaced at each change
	reader  chan struct{} // closed when another reader takes over; nil without a reader
	stays   time.Time     // until then the reader is not replaced
	endedAt time.Time
}

// saved is a stored message. Each reader sees only those list entries that it may use: a client
// that resumes a stream may have another token than the client that began it.
type saved struct {
	text []byte // nil for the priming event
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

// prime stores a first event without data (MCP 2025-11-25, Streamable HTTP). A client that loses
// the connection before the first message then has an id for resuming.
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

// close ends a stream even if answers are missing.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed, s.endedAt = true, s.c.Now()
		s.wake()
	}
}

// over returns when a stream ended, its size, and whether it has ended.
func (s *stream) over() (time.Time, int, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.endedAt, s.size, s.closed
}

// readerStays is how long a new reader cannot be replaced. Otherwise two clients of one session
// could replace each other endlessly.
const readerStays = 5 * time.Second

// attach makes the caller the reader. The earlier reader stops as soon as it may be replaced.
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

// detach removes a reader and wakes those that wait for its place.
func (s *stream) detach(reader chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reader != nil && s.reader == reader {
		close(reader)
		s.reader = nil
	}
}

// after returns the events from number n on and the number of the first of them. If the stream has
// not ended, news is closed at the next change.
func (s *stream) after(n int) (events []saved, first int, news <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first = max(n, s.base) // earlier events are lost
	if first < s.base+len(s.events) {
		events = s.events[first-s.base:]
	}
	s.sent = max(s.sent, first+len(events))
	if !s.closed {
		news = s.news
	}
	return events, first, news
}

// unsent returns the number of the first unsent event, where a reader without Last-Event-ID begins.
func (s *stream) unsent() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// serve writes the events from number n on as an event stream (RS-101). It ends with the stream or
// ctx, or if another reader takes over.
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
			_, _ = io.WriteString(w, mcp.ReplacedReader) // fails if the client is gone
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

// position parses an event id.
func position(id string) (stream string, n int, ok bool) {
	i := strings.LastIndexByte(id, '_')
	if i < 0 {
		return "", 0, false
	}
	n, err := strconv.Atoi(id[i+1:])
	return id[:i], n, err == nil && n >= 0 && n < 1<<30
}
