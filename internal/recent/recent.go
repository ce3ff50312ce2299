// Package recent keeps at hand what was read from the store and changes seldom, so that it is
// answered without the store most of the time, and also while the store is away.
package recent

import (
	"context"
	"errors"
	"sync"
	"time"
)

// TTL bounds how long a change by another process stays unseen, and how long a request waits
// to see it while the store hangs.
const TTL = 2 * time.Second

var errOld = errors.New("recent: the store has not answered for too long")

// Value is the last T that Read returned.
type Value[T any] struct {
	Read func(context.Context) (T, error)
	Now  func() time.Time
	// Strict has Load fail when Read does, and return nothing older than twice TTL: for what decides about
	// somebody.
	Strict bool

	reader sync.Mutex // held by the one that reads again

	mu      sync.Mutex // guards what follows
	known   bool
	current T
	askedAt time.Time // when it was read, or could not be
}

// Load returns the value, read again when it is older than TTL. Once it has been read, an earlier
// value is returned while another request reads it, and when Read fails or takes longer than TTL:
// the request that needs the store for more than this will see its error.
func (v *Value[T]) Load(ctx context.Context) (T, error) {
	current, known, age := v.atHand()
	if known && age < TTL {
		return current, nil
	}
	if known {
		if !v.reader.TryLock() {
			if v.Strict && age >= 2*TTL {
				return current, errOld
			}
			return current, nil
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, TTL)
		defer cancel()
	} else {
		v.reader.Lock()
	}
	defer v.reader.Unlock()
	fresh, err := v.Read(ctx)
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case err == nil:
		v.known, v.current = true, fresh
	case !v.known || v.Strict:
		return fresh, err
	}
	v.askedAt = v.Now()
	return v.current, nil
}

// atHand returns the value and its age; a clock that went back makes it old.
func (v *Value[T]) atHand() (current T, known bool, age time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if age = v.Now().Sub(v.askedAt); age < 0 {
		age = TTL
	}
	return v.current, v.known, age
}
