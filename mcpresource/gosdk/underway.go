package gosdk

import (
	"context"
	"sync"
)

// underWay counts the requests that have not been answered, but for streams that listen.
type underWay struct {
	mu   sync.Mutex // guards the rest
	n    int
	none chan struct{} // closed when n is 0 again; nil unless somebody waits
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

// wait returns when no request is under way, or the error of ctx.
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
