package statuslist

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	maxLists = 64 // in memory
	// lead is how early, at most, a used list is fetched again before its ttl ends, so that no
	// request waits.
	lead = time.Second
	// outage is how long after a failure requests do not wait for a new list.
	outage = 15 * time.Second
	// pause is the minimum time between two fetches after a failure.
	pause = time.Second
)

// Config states whose status lists are fetched, and how.
type Config struct {
	Issuer string
	Client *http.Client
	// Verify returns the payload of a JWT of the given media type, signed by the issuer.
	Verify func(ctx context.Context, token, mediaType string) ([]byte, error)
	Skew   time.Duration // to the issuer's clock
	Stale  time.Duration // how long after its ttl a list counts if it cannot be fetched again
	Now    func() time.Time
	Log    *slog.Logger
}

// Lists keeps the status lists of an issuer up to date. It is safe for concurrent use.
type Lists struct {
	c Config

	mu      sync.Mutex // guards pollers
	pollers map[string]*poller
}

// New returns Lists that have fetched nothing yet.
func New(c Config) *Lists { return &Lists{c: c, pollers: map[string]*poller{}} }

// poller maintains one list. It runs at most one fetch at a time.
type poller struct {
	lists *Lists
	uri   string
	list  atomic.Pointer[held] // nil before the first response, and if gone
	used  atomic.Int64         // seconds since the epoch
	turn  singleflight.Group

	mu      sync.Mutex // guards the fields below
	gone    bool       // another poller has replaced this one
	busy    bool       // fetching in the background
	failed  time.Time  // the end of the last fetch, if it failed
	err     error      // of that fetch
	tried   time.Time  // the end of the last fetch
	watches map[*watch]struct{}
	timer   *time.Timer // nil without recent watches
}

// poller returns the poller of a list, and creates it if necessary. If there are too many, it
// removes the least recently used one, preferably one without a stream.
func (s *Lists) poller(uri string, now time.Time) *poller {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pollers[uri]
	if p == nil {
		if len(s.pollers) >= maxLists {
			s.evict()
		}
		p = &poller{lists: s, uri: uri, watches: map[*watch]struct{}{}}
		s.pollers[uri] = p
	}
	p.used.Store(now.Unix())
	return p
}

func (s *Lists) evict() {
	var oldest *poller
	watched := false
	for _, p := range s.pollers {
		w := p.watched()
		if oldest == nil || watched && !w || watched == w && p.used.Load() < oldest.used.Load() {
			oldest, watched = p, w
		}
	}
	delete(s.pollers, oldest.uri)
	oldest.retire()
}

func (p *poller) watched() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.watches) > 0
}

// fresh returns the list, or nil if it must be fetched again.
func (p *poller) fresh(now time.Time) *held {
	l := p.list.Load()
	if l == nil || !now.Before(l.due) {
		return nil
	}
	if second := now.Unix(); p.used.Load() != second {
		p.used.Store(second)
	}
	return l
}

// current returns a usable list. If that is early enough, it fetches the list in the background.
// During an outage one request waits, and the others use the available list.
func (p *poller) current(ctx context.Context, now time.Time) (*held, error) {
	l := p.list.Load()
	p.mu.Lock()
	failed := p.failed
	p.mu.Unlock()
	switch {
	case l == nil || !now.Before(l.until):
	case now.Before(l.due):
		return l, nil
	case now.Before(l.old) || now.Sub(failed) < outage:
		p.background(ctx, l)
		return l, nil
	}
	fresh, err := p.ask(ctx, l)
	if err == nil {
		return fresh, nil
	}
	if l != nil && p.lists.c.Now().Before(l.until) {
		return l, nil
	}
	return nil, err
}

// since returns a list that was requested after a moment, or the error. All callers share the
// interval between fetches: one that comes too early waits for the next.
func (p *poller) since(ctx context.Context, moment time.Time) (*held, error) {
	for {
		p.mu.Lock()
		wait := p.tried.Add(pause).Sub(p.lists.c.Now())
		p.mu.Unlock()
		if wait > 0 {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(wait):
			}
		}
		l, err := p.ask(ctx, p.list.Load())
		if err != nil || !l.asked.Before(moment) {
			return l, err
		}
	}
}

// background fetches the list without delaying a request.
func (p *poller) background(ctx context.Context, seen *held) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy || p.paused() != nil {
		return
	}
	p.busy = true
	go func() {
		_, _ = p.ask(ctx, seen) // errors are logged there
		p.mu.Lock()
		defer p.mu.Unlock()
		p.busy = false
	}()
}

// paused returns the last fetch's error while it is too early for the next one.
func (p *poller) paused() error {
	if p.lists.c.Now().Sub(p.failed) < pause {
		return p.err
	}
	return nil
}

// ask fetches the list unless it already differs from seen. Concurrent callers share one fetch.
func (p *poller) ask(ctx context.Context, seen *held) (*held, error) {
	v, err, _ := p.turn.Do("", func() (any, error) {
		if l := p.list.Load(); l != nil && l != seen {
			return l, nil
		}
		p.mu.Lock()
		err := p.paused()
		p.mu.Unlock()
		if err != nil {
			return nil, err
		}
		l, err := p.read(context.WithoutCancel(ctx), seen)
		if err != nil {
			p.lists.c.Log.WarnContext(ctx, "status list of the authorization server not read", "list", p.uri, "error",
				err)
		}
		return l, p.note(l, err)
	})
	if err != nil {
		return nil, err
	}
	return v.(*held), nil
}

// note stores the result of a fetch.
func (p *poller) note(l *held, err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tried, p.failed, p.err = p.lists.c.Now(), time.Time{}, err
	switch {
	case err != nil:
		p.failed = p.tried
	case !p.gone:
		p.list.Store(l)
		for w := range p.watches {
			p.sift(w, l.status(w.index))
		}
	}
	return err
}
