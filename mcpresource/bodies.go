package mcpresource

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// Bodies bounds the memory that the bodies of requests take, of all callers together: from
// the first byte that is read until the request is over. One caller gets a quarter at most of
// what the others leave, so that no number of callers takes all of it; those without a token
// are one caller. The guards of a process should share one.
type Bodies struct {
	most, share int64

	mu    sync.Mutex // guards what follows
	total int64
	of    map[string]int64
}

// defaultBodies lets one caller send eight of the largest bodies at once.
const defaultBodies = 128 << 20

// NewBodies returns a bound of so many bytes.
func NewBodies(bytes int64) *Bodies {
	return &Bodies{most: bytes, share: bytes / 4, of: map[string]int64{}}
}

var (
	errShare = errors.New("mcpresource: the bodies of one caller take too much memory")
	errFull  = errors.New("mcpresource: the bodies of all requests take too much memory")
)

// take counts n bytes for who, or none and says whose bound they are beyond.
func (b *Bodies) take(who string, n int64) error {
	if n == 0 { // the end of a body, which may have been empty: there are no bytes to give back
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.of[who]+n > b.share:
		return errShare
	case b.of[who]+n > (b.most-(b.total-b.of[who]))/4:
		return errFull
	}
	b.total += n
	b.of[who] += n
	return nil
}

func (b *Bodies) give(who string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total -= n
	if b.of[who] -= n; b.of[who] == 0 {
		delete(b.of, who)
	}
}

// counted is the body of a request, each byte of which counts as soon as it is here: what a
// client announces, and does not send, takes no memory.
type counted struct {
	io.Reader
	bodies  *Bodies
	passage *passage
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	if err := c.bodies.take(c.passage.person(), int64(n)); err != nil {
		return 0, err
	}
	c.passage.held += int64(n)
	return n, err
}

// crowded is the answer to a body for which there is no room, nil for another error.
func (p *passage) crowded(err error) *refusal {
	switch {
	case errors.Is(err, errShare):
		return p.limited("Too much is being sent at once.", time.Second)
	case errors.Is(err, errFull):
		return &refusal{
			outcome: OutcomeCrowded, status: http.StatusServiceUnavailable, text: "The server is busy.",
			retry: time.Second, err: err,
		}
	}
	return nil
}
