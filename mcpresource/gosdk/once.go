package gosdk

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"time"
)

// ErrNoState is returned by Once in a request that has brought no requestState.
var ErrNoState = errors.New("gosdk: the request has no requestState")

type onceKey struct{}

// Once records that the requestState of this request has been used, and reports whether it had not
// been: of two requests that bring the same state, one gets true, at whichever replica that shares
// Options.Spent. A client can bring a state back as often as it likes until it expires, so a handler
// asks this before an effect that must happen once, such as a payment (MCP 2026-07-28, "Multi
// Round-Trip Requests", RS-183). With false it returns the result of the first time, or an error.
//
// An error means that it cannot be told: do nothing then.
func Once(ctx context.Context) (first bool, err error) {
	use, ok := ctx.Value(onceKey{}).(func(context.Context) (bool, error))
	if !ok {
		return false, ErrNoState
	}
	return use(ctx)
}

// withOnce lets the handler ask for the state that its request has brought.
func (x *exchange) withOnce(ctx context.Context) context.Context {
	if x.sealed == "" {
		return ctx
	}
	id := sha256.Sum256([]byte("requestState\x00" + x.sealed)) // Sealer: a value has one spelling
	until := x.o.now().Add(x.o.StateLife)
	return context.WithValue(ctx, onceKey{}, func(ctx context.Context) (bool, error) {
		return x.o.Spent.Use(ctx, string(id[:]), until)
	})
}

// mostSpent is more than two people can use at the default rate of calls and StateLife.
const mostSpent = 250_000

var errSpentFull = errors.New("gosdk: too many states have been used, so that another cannot be remembered")

// spent is the memory of one process. It forgets nothing early: when it is full, Once fails.
type spent struct {
	now func() time.Time

	mu    sync.Mutex // guards until
	until map[string]time.Time
}

func newSpent(now func() time.Time) *spent { return &spent{now: now, until: map[string]time.Time{}} }

// Use implements mcpresource.Replays.
func (s *spent) Use(_ context.Context, id string, until time.Time) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if end, ok := s.until[id]; ok && !now.After(end) {
		return false, nil
	}
	if len(s.until) >= mostSpent {
		for id, end := range s.until {
			if now.After(end) {
				delete(s.until, id)
			}
		}
		if len(s.until) >= mostSpent {
			return false, errSpentFull
		}
	}
	s.until[id] = until
	return true, nil
}
