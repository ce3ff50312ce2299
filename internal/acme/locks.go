package acme

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// A lock is a lease of the store, prolonged until it is given back: a replica that was killed
// has it for no longer than leaseFor.
const (
	leaseFor   = time.Minute
	leaseAgain = leaseFor / 3
	leaseRetry = time.Second
)

// errTurn: another replica took the lock while this one paused, and tries.
var errTurn = errors.New("acme: another replica tries")

// locks are those that this process has.
type locks struct {
	holder string // names this process

	mu   sync.Mutex // guards ends
	ends map[string]func()
}

// stop ends that the lease of a lock is prolonged. The caller has the mutex.
func (l *locks) stop(name string) error {
	end := l.ends[name]
	if end == nil {
		return fmt.Errorf("acme: the lock %s is not held", name)
	}
	end()
	return nil
}

// Lock implements certmagic.Locker. It waits until the lock is free or ctx ends.
func (f *files) Lock(ctx context.Context, name string) error {
	for {
		held, err := f.TryLock(ctx, name)
		if err != nil || held {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(leaseRetry):
		}
	}
}

// TryLock implements certmagic.TryLocker. Two goroutines of one process have a lock one after the
// other, as two processes do.
func (f *files) TryLock(ctx context.Context, name string) (bool, error) {
	l := &f.locked
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ends[name] != nil {
		return false, nil
	}
	return f.take(ctx, name)
}

// take takes the lease of a lock, and prolongs it. f.locked.mu is held.
func (f *files) take(ctx context.Context, name string) (bool, error) {
	held, err := f.lease(ctx, name, leaseFor)
	if err != nil || !held {
		return false, err
	}
	keep, end := context.WithCancel(context.WithoutCancel(ctx))
	go f.prolong(keep, name)
	if f.locked.ends == nil {
		f.locked.ends = make(map[string]func())
	}
	f.locked.ends[name] = end
	return true, nil
}

// prolong keeps a lock. When the store cannot be asked, the lease runs out: what was begun under it is
// then done twice at most, which costs a certificate too many.
func (f *files) prolong(ctx context.Context, name string) {
	tick := time.NewTicker(leaseAgain)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_, _ = f.lease(ctx, name, leaseFor)
		}
	}
}

// pause gives the lease of the lock for a domain to other replicas until this one tries again: certmagic has
// a lock for all its attempts, between which hours go by, and where this replica reaches nothing another may.
func (f *files) pause(ctx context.Context, domain string) {
	l := &f.locked
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, end := range l.ends {
		if strings.HasSuffix(name, "_"+domain) {
			end()
			_, _ = f.lease(ctx, name, 0) // else it runs out
		}
	}
}

// RenewLockLease implements certmagic.LockLeaseRenewer, which is called before each attempt. It fails while another
// replica has the lock.
func (f *files) RenewLockLease(ctx context.Context, name string, _ time.Duration) error {
	f.locked.mu.Lock()
	defer f.locked.mu.Unlock()
	if err := f.locked.stop(name); err != nil {
		return err
	}
	held, err := f.take(ctx, name)
	if err == nil && !held {
		err = errTurn
	}
	return err
}

// Unlock implements certmagic.Locker.
func (f *files) Unlock(ctx context.Context, name string) error {
	f.locked.mu.Lock()
	defer f.locked.mu.Unlock()
	if err := f.locked.stop(name); err != nil {
		return err
	}
	delete(f.locked.ends, name)
	_, err := f.lease(context.WithoutCancel(ctx), name, 0)
	return err
}

// lease takes a lock, prolongs it, or with no time gives it back.
func (f *files) lease(ctx context.Context, name string, length time.Duration) (bool, error) {
	now := f.now()
	return f.store.Lease(ctx, "acme:"+name, f.locked.holder, now, now.Add(length))
}
