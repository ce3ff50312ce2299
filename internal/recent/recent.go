// Package recent keeps at hand what was read from the store and changes seldom, so that it is
// answered without the store most of the time, and also while the store is away.
package recent

import (
	"context"
	"errors"
	"sync"
	"time"
)

// TTL is how long a value is used when Value does not say otherwise.
const TTL = 2 * time.Second

// errUnread is what a Read that panicked leaves to those who wait for it.
var errUnread = errors.New("recent: the value was not read to the end")

// Value is the last T that Read returned.
type Value[T any] struct {
	Read func(context.Context) (T, error)
	Now  func() time.Time
	// TTL bounds how long a change by another process stays unseen; 0 means the constant TTL. Unless the value is
	// Strict, it also bounds how long a request waits for Read.
	TTL time.Duration
	// Strict has Load fail when Read does, and return nothing that was read longer ago than twice TTL: for what
	// decides about somebody.
	Strict bool

	mu      sync.Mutex // guards what follows
	known   bool
	current T
	askedAt time.Time   // when it was read, or could not be
	reading *reading[T] // nil: no request reads
}

// reading is one call of Read. Its value and error are set before done is closed.
type reading[T any] struct {
	done  chan struct{}
	value T
	err   error
}

// Load returns the value, and reads it again when it is older than TTL. One request reads. The others use the earlier
// value meanwhile, and wait only when they may not. When Read fails or takes longer than TTL, the earlier value stands
// unless the value is Strict: a request that needs the store for more than this sees its error.
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
			if !errors.Is(r.err, context.Canceled) {
				return r.value, r.err
			}
			// The caller of the request that read has gone. This request reads.
		case <-ctx.Done():
			return current, ctx.Err()
		}
	}
}

// Forget has the next Load read again, and wait for it. A Read that has begun does not count.
func (v *Value[T]) Forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.known, v.reading = false, nil
}

// join returns the value if a request may use it, and otherwise the reading to wait for, which is for the first
// request to carry out.
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
	v.mu.Lock()
	began, fallback := v.Now(), v.known && !v.Strict
	v.mu.Unlock()
	if fallback {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, v.ttl())
		defer cancel()
	}
	fresh, err := v.Read(ctx)
	v.mu.Lock()
	defer v.mu.Unlock()
	r.value, r.err = fresh, err
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
