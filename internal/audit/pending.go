package audit

import (
	"context"
	"sync"
	"time"
)

// Pending gathers what was recorded under a context and is not kept for good yet, so that what rests
// on it can wait.
type Pending struct {
	mu    sync.Mutex // guards waits
	waits []func(context.Context) error
}

type pendingKey struct{}

// Awaited returns a context under which Logs say what has to be waited for.
func Awaited(ctx context.Context) (context.Context, *Pending) {
	p := &Pending{}
	return context.WithValue(ctx, pendingKey{}, p), p
}

// Await is called by a Log for an event of ctx that it does not keep for good yet: wait returns when it
// does, or why it cannot. It does nothing when nothing waits for ctx.
func Await(ctx context.Context, wait func(context.Context) error) {
	if p, ok := ctx.Value(pendingKey{}).(*Pending); ok {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.waits = append(p.waits, wait)
	}
}

// Wait waits until all that was recorded so far is kept, and returns the first error.
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
