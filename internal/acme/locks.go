package acme

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// A lock is a lease in the store, renewed every leaseAgain. The locks of a crashed replica expire
// within leaseFor.
const (
	leaseFor   = time.Minute
	leaseAgain = leaseFor / 3
	leaseRetry = time.Second
)

// errTurn means that another replica took the lock while this one paused.
var errTurn = errors.New("acme: another replica tries")

// locks holds the locks of this process.
type locks struct {
	holder string // identifies this process

	mu   sync.Mutex // guards ends
	ends map[string]func()
}

// stop stops renewing a lock's lease. The caller holds the mutex.
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

// TryLock implements certmagic.TryLocker. A lock also excludes other goroutines of this process.
func (f *files) TryLock(ctx context.Context, name string) (bool, error) {
	l := &f.locked
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ends[name] != nil {
		return false, nil
	}
	return f.take(ctx, name)
}

// take acquires a lock's lease and starts to renew it. The caller holds f.locked.mu.
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

// prolong renews a lease until ctx ends. If the store is unavailable, the lease expires, and at
// worst another replica obtains the same certificate.
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

// pause releases the lease for a domain until this replica tries again. certmagic keeps its lock
// between attempts, which can be hours; another replica may succeed sooner.
func (f *files) pause(ctx context.Context, domain string) {
	l := &f.locked
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, end := range l.ends {
		if strings.HasSuffix(name, "_"+domain) {
			end()
			_, _ = f.lease(ctx, name, 0) // on failure it expires
		}
	}
}

// RenewLockLease implements certmagic.LockLeaseRenewer. certmagic calls it before each attempt. It
// returns errTurn while another replica has the lock.
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

// lease acquires or renews a lock; length 0 releases it.
func (f *files) lease(ctx context.Context, name string, length time.Duration) (bool, error) {
	now := f.now()
	return f.store.Lease(ctx, "acme:"+name, f.locked.holder, now, now.Add(length))
}
