package audit

import (
	"context"
	"sync"
	"time"
)

// Pending collects the events of a context that are not stored permanently yet, so that a caller
// can wait for them.
type Pending struct {
	mu    sync.Mutex // guards waits
	waits []func(context.Context) error
}

type pendingKey struct{}

// Awaited returns a context that collects such events, and their Pending.
func Awaited(ctx context.Context) (context.Context, *Pending) {
	p := &Pending{}
	return context.WithValue(ctx, pendingKey{}, p), p
}

// Await is called by a Log that has not stored an event yet. wait must return when it is stored, or
// the error that prevents it. Without Awaited, Await has no effect.
func Await(ctx context.Context, wait func(context.Context) error) {
	if p, ok := ctx.Value(pendingKey{}).(*Pending); ok {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.waits = append(p.waits, wait)
	}
}

// Wait waits until all events recorded so far are stored, or returns the first error.
func (p *Pending) Wait(ctx context.Context) error {
	p.mu.Lock()
	waits := p.waits
	p.waits = nil
	p.mu.Unlock()
	for _, wait := range waits {
		if err := wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p *Pending) wait(ctx context.Context, atMost time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	return p.Wait(ctx)
}
