package mcpresource

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var errUnknownStatus = fmt.Errorf("%w: its status list is out of reach", ErrUnavailable)

// watch is a request under way, which ends when its token is not valid any more.
type watch struct {
	index uint64
	end   context.CancelCauseFunc
}

// watch has end called as soon as the token is revoked, or nobody can say for too long
// whether it is. While anything is watched the list is polled without requests.
func (r *statusRef) watch(end context.CancelCauseFunc) (stop func()) {
	w := &watch{r.index, end}
	for {
		p := r.poller.Load()
		if p != nil && p.add(w) {
			return func() { p.remove(w) }
		}
		r.poller.Store(r.lists.poller(r.uri, r.lists.now()))
	}
}

// add reports false when another poller has the list by now.
func (p *statusPoller) add(w *watch) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return false
	}
	p.watches[w] = struct{}{}
	l := p.list.Load()
	if l != nil {
		p.sift(w, l.status(w.index)) // another may have come since it was judged
	}
	if p.timer == nil {
		var wait time.Duration
		if l != nil {
			wait = l.due.Sub(p.lists.now())
		}
		p.timer = time.AfterFunc(wait, p.tick)
	}
	return true
}

func (p *statusPoller) remove(w *watch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.watches, w)
}

// sift ends a watch when there is a reason.
func (p *statusPoller) sift(w *watch, reason error) {
	if reason != nil {
		delete(p.watches, w)
		w.end(reason)
	}
}

// tick polls for what is watched. It comes again until nothing is.
func (p *statusPoller) tick() {
	p.mu.Lock()
	if p.gone || len(p.watches) == 0 {
		p.timer = nil
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	if l := p.list.Load(); l == nil || !p.lists.now().Before(l.due) {
		_, _ = p.ask(context.Background(), l) // logged there
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.gone {
		p.timer.Reset(p.rest())
	}
}

// rest is how long until the next tick. When there is no list that counts, nothing that
// is watched may go on.
func (p *statusPoller) rest() time.Duration {
	l, now := p.list.Load(), p.lists.now()
	switch {
	case l == nil || !now.Before(l.until):
		for w := range p.watches {
			p.sift(w, errUnknownStatus)
		}
		return retryPause
	case now.Before(l.due):
		return l.due.Sub(now)
	}
	return min(retryPause, l.until.Sub(now))
}

// retire makes tokens that point here look for the list again, and ends what is watched.
func (p *statusPoller) retire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
	p.list.Store(nil)
	for w := range p.watches {
		p.sift(w, errUnknownStatus)
	}
	if p.timer != nil {
		p.timer.Stop()
	}
}

// judgeAgain is how often the token of a request under way is validated again when it
// names no status list: so that a stream ends, too, where revocation is seen otherwise.
// Of one that does, it is the key: whoever stole it names a place that nobody revokes.
const judgeAgain = 5 * time.Second

// lifetime returns the context of a request, so that no stream outlives its token: it
// ends when the token does, or is revoked, for which there is end.
func (g *Guard) lifetime(ctx context.Context, end context.CancelCauseFunc, p *passage) (context.Context, func()) {
	if p.principal == nil {
		return g.timed(ctx, p)
	}
	ctx, cancel := context.WithTimeout(ctx, p.principal.ExpiresAt.Add(g.c.ClockSkew).Sub(g.c.Now()))
	ctx, untime := g.timed(ctx, p)
	leave := func() {}
	if status := p.principal.status; status != nil {
		leave = status.watch(end)
	}
	rest := judgeOften(ctx, p.principal, end)
	return ctx, func() {
		rest()
		leave()
		untime()
		cancel()
	}
}

var errTimeout = errors.New("mcpresource: the operation took too long")

// timed bounds the time of what is no stream.
func (g *Guard) timed(ctx context.Context, p *passage) (context.Context, context.CancelFunc) {
	if g.c.Limits.Timeout <= 0 || p.body == nil || p.envelope.Streams() {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, g.c.Limits.Timeout, errTimeout)
}

func (g *Guard) validateAgain(c Credential) func(context.Context) (*Principal, error) {
	return func(ctx context.Context) (*Principal, error) { return g.c.Validator.Validate(ctx, c) }
}

// still returns nil while the token is good, but for what its status list is watched for.
func (p *Principal) still(ctx context.Context) error {
	if p.status != nil {
		return p.status.signed(ctx)
	}
	_, err := p.again(ctx)
	return err
}

// judgeOften judges a token again and again until stop is called, and ends the request
// when it is no longer good. An outage ends nothing: the next request will see it.
func judgeOften(ctx context.Context, p *Principal, end context.CancelCauseFunc) (stop func()) {
	var t *time.Timer
	ready := make(chan struct{})
	t = time.AfterFunc(judgeAgain, func() {
		<-ready
		if err := p.still(ctx); err != nil && !outage(err) {
			end(err)
			return
		}
		if ctx.Err() == nil {
			t.Reset(judgeAgain)
		}
	})
	close(ready)
	return func() { t.Stop() }
}

// endedEarly is why a request had to end before its token expired, or nil.
func endedEarly(ctx context.Context) error {
	if err := context.Cause(ctx); errors.Is(err, ErrInvalidToken) || errors.Is(err, ErrUnavailable) {
		return err
	}
	return nil
}
