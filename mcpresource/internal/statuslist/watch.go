package statuslist

import (
	"context"
	"time"
)

// watch is a running request that ends when its token is no longer valid.
type watch struct {
	index uint64
	end   context.CancelCauseFunc
}

// Watch calls end as soon as the token is revoked, or when its status was unknown for too long.
// While anything is watched, the list is polled without requests.
func (r *Place) Watch(end context.CancelCauseFunc) (stop func()) {
	w := &watch{r.index, end}
	for {
		p := r.poller.Load()
		if p != nil && p.add(w) {
			return func() { p.remove(w) }
		}
		r.poller.Store(r.lists.poller(r.uri, r.lists.c.Now()))
	}
}

// add adds a watch. It returns false if another poller has replaced p.
func (p *poller) add(w *watch) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return false
	}
	p.watches[w] = struct{}{}
	l := p.list.Load()
	if l != nil {
		p.sift(w, l.status(w.index)) // the list may have changed since the check
	}
	if p.timer == nil {
		var wait time.Duration
		if l != nil {
			wait = l.due.Sub(p.lists.c.Now())
		}
		p.timer = time.AfterFunc(wait, p.tick)
	}
	return true
}

func (p *poller) remove(w *watch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.watches, w)
}

// sift ends a watch if reason is not nil.
func (p *poller) sift(w *watch, reason error) {
	if reason != nil {
		delete(p.watches, w)
		w.end(reason)
	}
}

// tick polls the list while anything is watched.
func (p *poller) tick() {
	p.mu.Lock()
	if p.gone || len(p.watches) == 0 {
		p.timer = nil
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	if l := p.list.Load(); l == nil || !p.lists.c.Now().Before(l.due) {
		_, _ = p.ask(context.Background(), l) // errors are logged there
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.gone {
		p.timer.Reset(p.rest())
	}
}

// rest returns the time until the next tick. Without a usable list, it ends every watched request.
func (p *poller) rest() time.Duration {
	l, now := p.list.Load(), p.lists.c.Now()
	switch {
	case l == nil || !now.Before(l.until):
		for w := range p.watches {
			p.sift(w, errUnknown)
		}
		return pause
	case now.Before(l.due):
		return l.due.Sub(now)
	}
	return min(pause, l.until.Sub(now))
}

// retire makes tokens that use p look up the list again, and ends its watches.
func (p *poller) retire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
	p.list.Store(nil)
	for w := range p.watches {
		p.sift(w, errUnknown)
	}
	if p.timer != nil {
		p.timer.Stop()
	}
}
