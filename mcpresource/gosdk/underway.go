package gosdk

import (
	"context"
	"sync"
)

// underWay counts unanswered requests, without listening streams.
type underWay struct {
	mu   sync.Mutex // guards the fields below
	n    int
	none chan struct{} // closed when n is 0 again; nil unless someone waits
}

// enter counts a request until leave is called.
func (u *underWay) enter() (leave func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.n++
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.n--; u.n == 0 && u.none != nil {
			close(u.none)
			u.none = nil
		}
	}
}

// wait waits until no request is running. It returns the error of ctx if ctx ends first.
func (u *underWay) wait(ctx context.Context) error {
	u.mu.Lock()
	if u.n == 0 {
		u.mu.Unlock()
		return nil
	}
	if u.none == nil {
		u.none = make(chan struct{})
	}
	none := u.none
	u.mu.Unlock()
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
