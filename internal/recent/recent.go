// Package recent keeps at hand what was read from the store and changes seldom, so that it is
// answered without the store most of the time, and also while the store is away.
package recent

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
)

// TTL is how long a value is used when Value does not say otherwise.
const TTL = 2 * time.Second

// errUnread is the error of a reading whose Read panicked.
var errUnread = errors.New("recent: Read did not return")

// Value is the last T that Read returned.
type Value[T any] struct {
	Read func(context.Context) (T, error)
	Now  func() time.Time
	// TTL is how old the value may be before it is read again; 0 means the constant TTL. While a read runs, the earlier
	// value is used: up to twice TTL if Strict. If not Strict, TTL also bounds each read.
	TTL time.Duration
	// Strict makes Load fail when Read fails, and never return a value older than twice TTL. Access decisions need it.
	Strict bool

	mu      sync.Mutex // guards what follows
	known   bool
	current T
	askedAt time.Time   // when it was read, or could not be
	reading *reading[T] // nil: no request reads
}

// reading is one call of Read. What it came to is set before done is closed.
type reading[T any] struct {
	done  chan struct{}
	value T
	err   error
	left  bool // the request that read had ended
}

// Load returns the value, and reads it again when it is older than TTL. One caller reads. The others get the earlier
// value if it may still be used, and wait otherwise. If Read fails, a Value that is not Strict keeps the earlier value:
// a request that needs the store for more than this sees its error.
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
			// The request that read has ended. Try again.
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

// join returns the value if it may be used, or else the reading to wait for. First reports whether the caller must
// carry it out.
func (v *Value[T]) join() (current T, r *reading[T], usable, first bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	age, ttl := v.Now().Sub(v.askedAt), v.ttl()
	if age < 0 { // the clock went back
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

// read carries out a reading.
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
