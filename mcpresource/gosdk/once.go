package gosdk

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"time"
)

// ErrNoState means that the request has no requestState. Once returns it.
var ErrNoState = errors.New("gosdk: the request has no requestState")

type onceKey struct{}

// Once marks the requestState of this request as used, and reports whether it was unused. Of two
// requests with the same state, exactly one gets true, across all replicas that share
// Options.Spent. A client can return a state any number of times until it expires. So a handler
// calls Once before an effect that must happen once, such as a payment (MCP 2026-07-28, "Multi
// Round-Trip Requests", RS-183). If first is false, it returns the first result again, or an error.
//
// An error means that the answer is unknown: the handler must then do nothing.
func Once(ctx context.Context) (first bool, err error) {
	use, ok := ctx.Value(onceKey{}).(func(context.Context) (bool, error))
	if !ok {
		return false, ErrNoState
	}
	return use(ctx)
}

// withOnce makes Once work for the state of this request.
func (x *exchange) withOnce(ctx context.Context) context.Context {
	if x.sealed == "" {
		return ctx
	}
	id := sha256.Sum256([]byte("requestState\x00" + x.sealed)) // unique, because a Sealer accepts only one spelling
	until := x.o.now().Add(x.o.StateLife)
	return context.WithValue(ctx, onceKey{}, func(ctx context.Context) (bool, error) {
		return x.o.Spent.Use(ctx, string(id[:]), until)
	})
}

// mostSpent is more than two users can use up at the default rate of calls and StateLife.
const mostSpent = 250_000

var errSpentFull = errors.New("gosdk: too many states have been used, so that another cannot be remembered")

// spent stores used states in memory. It never drops one early: when it is full, Once fails.
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
