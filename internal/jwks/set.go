// Package jwks reads and caches the JSON Web Key Sets of other servers (RFC 7517).
package jwks

import (
	"cmp"
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// Set caches a key set. It is fetched when first needed, so that servers may start in any order.
// The fields must not change after the first use.
type Set[K any] struct {
	// Fetch returns the keys, and how long they are fresh.
	Fetch func(context.Context) (keys []K, fresh time.Duration, err error)
	Now   func() time.Time
	// Pause is the minimum time between two fetches, also for unknown keys: forged tokens must not
	// cause requests to the issuer.
	Pause time.Duration
	// Retry is the same without usable keys, for example when both servers start.
	Retry time.Duration
	// Grace is how long keys that are no longer fresh are used while they are fetched. With a Grace,
	// no caller that has its key waits for a server whose last fetch failed.
	Grace time.Duration
	// Stale is how long they are used if they cannot be fetched.
	Stale time.Duration
	// Allow, if set, can refuse a fetch. A refusal is not remembered.
	Allow func(use string) error

	flight singleflight.Group

	mu   sync.Mutex // guards last
	last state[K]
}

// state is the result of all fetches.
type state[K any] struct {
	keys    []K // of the last good fetch, with its end and lifetime; nil: none yet
	readAt  time.Time
	fresh   time.Duration
	ended   int       // number of fetches
	tried   time.Time // end of the last fetch
	err     error     // of the last fetch
	running bool      // a fetch is under way
}

// Forever is the lifetime of keys that never change. A clock that is set back must not overflow it.
const Forever time.Duration = math.MaxInt64 / 2

// ErrNoKey means that the set lacks the key. Any other error means that the set is unavailable.
var ErrNoKey = errors.New("no such key")

// Find calls found with the usable keys until it returns true. In between it fetches the set, at
// most once. Keys that are fresh and found cause no fetch. Find returns the usable keys, with an
// error unless found returned true.
func (s *Set[K]) Find(ctx context.Context, found func([]K) bool) ([]K, error) {
	return s.FindFor(ctx, "", found)
}

// FindFor is Find for one of several uses. Callers with the same use share an allowance and a fetch.
func (s *Set[K]) FindFor(ctx context.Context, use string, found func([]K) bool) ([]K, error) {
	last, now := s.state(), s.Now()
	keys, past := s.usable(last, now)
	pause := s.Pause
	if keys == nil {
		pause = s.Retry
	}
	paused := now.Sub(last.tried) < pause
	switch ok := keys != nil && found(keys); {
	case ok && (past < 0 || paused):
		return keys, nil
	case ok && (past < s.Grace || s.Grace > 0 && last.err != nil):
		if !last.running {
			s.start(ctx, use, last.ended) // this caller need not wait
		}
		return keys, nil
	case paused:
		return keys, cmp.Or(last.err, ErrNoKey)
	}
	var fetched singleflight.Result
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case fetched = <-s.start(ctx, use, last.ended):
	}
	keys, _ = s.usable(s.state(), s.Now())
	if keys != nil && found(keys) {
		return keys, nil
	}
	return keys, cmp.Or(fetched.Err, ErrNoKey)
}

// Refresh fetches the set now.
func (s *Set[K]) Refresh(ctx context.Context) error {
	return (<-s.start(ctx, "", s.state().ended)).Err
}

func (s *Set[K]) state() state[K] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// usable returns the keys that may still be used, and how long ago they ceased to be fresh.
func (s *Set[K]) usable(last state[K], now time.Time) (keys []K, past time.Duration) {
	past = now.Sub(last.readAt) - last.fresh
	if past < s.Stale {
		keys = last.keys
	}
	return keys, past
}

// start fetches the set for a caller that has seen the state after a number of fetches. Concurrent
// callers share one fetch, which outlasts them.
func (s *Set[K]) start(ctx context.Context, use string, seen int) <-chan singleflight.Result {
	return s.flight.DoChan(use, func() (any, error) {
		if last := s.state(); last.ended != seen {
			return nil, last.err // of a fetch that ended in the meantime
		}
		if s.Allow != nil {
			if err := s.Allow(use); err != nil {
				return nil, err
			}
		}
		s.change(func(last *state[K]) { last.running = true })
		keys, fresh, err := s.Fetch(context.WithoutCancel(ctx))
		s.change(func(last *state[K]) {
			last.running, last.err, last.tried = false, err, s.Now() // callers during a fetch wait for it
			last.ended++
			if err == nil {
				last.keys, last.fresh, last.readAt = append([]K{}, keys...), fresh, last.tried
			}
		})
		return nil, err
	})
}

func (s *Set[K]) change(to func(*state[K])) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to(&s.last)
}
