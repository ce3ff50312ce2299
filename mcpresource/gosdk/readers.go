package gosdk

import (
	"context"
	"net/http"
	"strings"
	"sync"

	protocol "github.com/mcp-authd/mcp-authd/internal/mcp"
)

// readers keeps the GET requests that read streams of sessions, one for each stream. The newest replaces the one
// before it, whose client may be gone while a proxy holds its connection. The SDK alone would answer 409 until then.
type readers struct {
	mu       sync.Mutex // guards byStream
	byStream map[string]*streamReader
}

type streamReader struct {
	end  context.CancelFunc
	done chan struct{} // closed when its handler has returned
}

func newReaders() *readers { return &readers{byStream: map[string]*streamReader{}} }

// replace ends the reader before r and waits for it. It returns r with a context that the next reader ends, and what
// to call when r has been served.
func (s *readers) replace(r *http.Request) (*http.Request, func()) {
	stream := ""
	if last := r.Header.Get(protocol.HeaderLastEvent); last != "" {
		stream = last[:max(strings.LastIndexByte(last, '_'), 0)]
	}
	key := r.Header.Get(protocol.HeaderSession) + " " + stream
	ctx, end := context.WithCancel(r.Context())
	own := &streamReader{end: end, done: make(chan struct{})}
	s.mu.Lock()
	earlier := s.byStream[key]
	s.byStream[key] = own
	s.mu.Unlock()
	if earlier != nil {
		earlier.end()
		select {
		case <-earlier.done:
		case <-ctx.Done():
		}
	}
	return r.WithContext(ctx), func() {
		end()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.byStream[key] == own {
			delete(s.byStream, key)
		}
		close(own.done)
	}
}
