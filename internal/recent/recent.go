// Package recent caches values that are read from the store and seldom change. Most requests then
// need no store, and requests continue while the store is unavailable.
package recent

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// TTL is the default lifetime of a value.
const TTL = 2 * time.Second

// errUnread is the result of a reading whose Read panicked.
var errUnread = errors.New("recent: Read did not return")

// Value caches the last T that Read returned.
type Value[T any] struct {
	Read func(context.Context) (T, error)
	Now  func() time.Time
	// TTL is how old the value may be before it is read again. The default is the constant TTL.
	// While a read runs, the earlier value is used: up to twice TTL if Strict. If not Strict, TTL
	// also limits each read.
	TTL time.Duration
	// Strict makes Load fail if Read fails, and never return a value older than twice TTL. Access
	// decisions need it.
	Strict bool

	mu      sync.Mutex // guards the following fields
	known   bool
	current T
	askedAt time.Time   // when it was read, or the read failed
	reading *reading[T] // nil if no read runs
}

// reading is one call of Read. Its result is set before done is closed.
type reading[T any] struct {
	done  chan struct{}
	value T
	err   error
	left  bool // the reading request has ended
}

// Load returns the value, and reads it again if it is older than TTL. One caller reads. The others
// get the earlier value if it may still be used, and otherwise wait. If Read fails, a Value that is
// not Strict keeps the earlier value: requests that need more from the store see its error there.
func (v *Value[T]) Load(ctx context.Context) (T, error) {
	for {
		current, r, usable, first := v.join()
		switch {
		case usable:
			return current, nil
		case first:
			v.read(ctx, r)
			return r.value, r.err
		}
		select {
		case <-r.done:
			if !r.left {
				return r.value, r.err
			}
			// The reading request has ended. Try again.
		case <-ctx.Done():
			return current, ctx.Err()
		}
	}
}

// Forget makes the next Load read again. It discards the result of a Read in progress.
func (v *Value[T]) Forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.known, v.reading = false, nil
}

// join returns the value if it may be used, or else the reading to wait for. first reports whether
// the caller must run it.
func (v *Value[T]) join() (current T, r *reading[T], usable, first bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	age, ttl := v.Now().Sub(v.askedAt), v.ttl()
	if age < 0 { // the clock was set back
		age = ttl
	}
	tolerable := v.reading != nil && (!v.Strict || age < 2*ttl)
	if v.known && (age < ttl || tolerable) {
		return v.current, nil, true, false
	}
	if v.reading == nil {
		v.reading, first = &reading[T]{done: make(chan struct{}), err: errUnread}, true
	}
	return v.current, v.reading, false, first
}

// read runs a reading.
func (v *Value[T]) read(ctx context.Context, r *reading[T]) {
	defer v.end(r)
	request := ctx
	v.mu.Lock()
	began, fallback := v.Now(), v.known && !v.Strict
	v.mu.Unlock()
	if fallback {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, v.ttl())
		defer cancel()
	}
	fresh, err := v.Read(storage.ForEveryone(ctx))
	v.mu.Lock()
	defer v.mu.Unlock()
	r.value, r.err, r.left = fresh, err, err != nil && request.Err() != nil
	switch {
	case v.reading != r: // forgotten
	case err == nil:
		v.known, v.current, v.askedAt = true, fresh, began
	case fallback:
		r.value, r.err, v.askedAt = v.current, nil, v.Now()
	}
}

func (v *Value[T]) end(r *reading[T]) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.reading == r {
		v.reading = nil
	}
	close(r.done)
}

func (v *Value[T]) ttl() time.Duration {
	if v.TTL > 0 {
		return v.TTL
	}
	return TTL
}
