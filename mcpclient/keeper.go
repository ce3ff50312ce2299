package mcpclient

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

type token struct {
	access, kind string
	scopes       oauth.Scopes // as granted
	renew        time.Time    // when to renew it
	expiry       time.Time    // when to stop using it
}

const (
	// A token is renewed after the fraction renewAt of its lifetime, plus a random part of up to
	// renewSpread, so that replicas do not renew at once.
	renewAt, renewSpread = 0.70, 0.15
	// margin is how long before its expiry a token is no longer used: requests take time and clocks
	// differ.
	margin = 10 * time.Second

	refusedFirst, refusedMost = 5 * time.Second, 5 * time.Minute
	failedFirst, failedMost   = time.Second, time.Minute
	mostPatience              = 10 * time.Minute // limit for a wait that a server requests
)

// live sets the times of renewal and expiry from the token's lifetime.
func (t *token) live(now time.Time, lifetime time.Duration) {
	part := renewAt + renewSpread*rand.Float64()
	t.renew = now.Add(time.Duration(float64(lifetime) * part))
	t.expiry = now.Add(lifetime - min(margin, lifetime/10))
}

// keeper holds a valid token, and runs at most one token request at a time.
type keeper struct {
	get func(context.Context, oauth.Scopes) (*token, error)
	now func() time.Time

	mu      sync.Mutex   // guards the fields below
	token   *token       // nil: ask for a new one
	scopes  oauth.Scopes // to request
	flight  *flight      // nil if no request is running
	renewal pause        // after a failed renewal
	wider   pause        // after a failed request for more scopes
	refused pause        // after a 401 for a new token
}

// flight is a running token request.
type flight struct {
	done  chan struct{} // closed when it ends
	token *token
	err   error
}

func newKeeper(scopes oauth.Scopes, get func(context.Context, oauth.Scopes) (*token, error)) *keeper {
	return &keeper{get: get, now: time.Now, scopes: scopes}
}

// Token returns a valid token. After a failed request it returns that error until the pause ends.
func (k *keeper) Token(ctx context.Context) (*token, error) {
	k.mu.Lock()
	now := k.now()
	t := k.token
	if t != nil && !now.Before(t.expiry) {
		t, k.token = nil, nil
	}
	if t != nil && now.Before(t.renew) {
		k.mu.Unlock()
		return t, nil
	}
	err := k.renewal.holds(now)
	if k.flight == nil && err == nil {
		k.start(ctx, k.scopes, &k.renewal)
	}
	f := k.flight
	k.mu.Unlock()
	switch {
	case t != nil:
		return t, nil // still valid while the next one is requested
	case f == nil:
		return nil, err
	}
	return f.wait(ctx)
}

// start requests a token in the background, because other callers may wait for it after this one
// leaves.
func (k *keeper) start(ctx context.Context, scopes oauth.Scopes, p *pause) *flight {
	f := &flight{done: make(chan struct{})}
	k.flight = f
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewalTime)
	go func() {
		defer cancel()
		t, err := k.get(ctx, scopes)
		k.mu.Lock()
		defer k.mu.Unlock()
		defer close(f.done)
		f.token, f.err, k.flight = t, err, nil
		if err != nil {
			p.failed(k.now(), err)
			return
		}
		k.token, k.scopes = t, scopes
		*p = pause{}
	}()
	return f
}

func (f *flight) wait(ctx context.Context) (*token, error) {
	select {
	case <-f.done:
		return f.token, f.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// replace returns a token other than t, which the MCP server rejected. It returns nil if t is so
// new that another token would not help.
func (k *keeper) replace(ctx context.Context, t *token) (*token, error) {
	k.mu.Lock()
	if k.token == t {
		now := k.now()
		if k.refused.holds(now) != nil {
			k.mu.Unlock()
			return nil, nil
		}
		k.refused.failed(now, errRefused)
		k.token = nil
	}
	k.mu.Unlock()
	return k.Token(ctx)
}

var (
	errRefused = errors.New("mcpclient: the MCP server refuses the token")
	errLess    = errors.New("mcpclient: the authorization server gives fewer scopes than were asked for")
)

// accepted records that the MCP server accepts a token.
func (k *keeper) accepted(t *token) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.token == t {
		k.refused = pause{}
	}
}

// widen returns a token other than t that has the scopes in needed in addition to the scopes so
// far. It returns nil if that was recently refused, or if the authorization server grants less.
func (k *keeper) widen(ctx context.Context, t *token, needed oauth.Scopes) (*token, error) {
	for {
		k.mu.Lock()
		if have := k.token; have != nil && have.scopes.Has(needed...) {
			k.mu.Unlock()
			if have == t {
				return nil, nil
			}
			return have, nil
		}
		if k.flight == nil {
			break
		}
		f := k.flight // for fewer or the same scopes
		k.mu.Unlock()
		if _, err := f.wait(ctx); ctx.Err() != nil {
			return nil, err
		}
	}
	if k.wider.holds(k.now()) != nil {
		k.mu.Unlock()
		return nil, nil
	}
	had, all := k.scopes, k.scopes.Union(needed)
	if k.token != nil {
		all = all.Union(k.token.scopes)
	}
	f := k.start(ctx, all, &k.wider)
	k.mu.Unlock()
	wider, err := f.wait(ctx)
	if err != nil || wider.scopes.Has(needed...) {
		return wider, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.scopes = had
	k.wider.failed(k.now(), errLess)
	return nil, nil
}

func (k *keeper) granted() oauth.Scopes {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.token == nil {
		return k.scopes
	}
	return k.token.scopes
}

// pause is the time after a failure during which the request is not repeated.
type pause struct {
	until time.Time
	err   error
	times int
}

// holds returns the last error while the pause lasts, else nil.
func (p *pause) holds(now time.Time) error {
	if now.Before(p.until) {
		return p.err
	}
	return nil
}

// failed starts a pause that grows with each failure.
func (p *pause) failed(now time.Time, err error) {
	first, most := refusedFirst, refusedMost
	var e *Error
	temporary := errors.As(err, &e) && e.temporary
	if temporary {
		first, most = failedFirst, failedMost
	}
	wait := most
	if p.times < 10 {
		wait = min(first<<p.times, most)
	}
	p.times++
	wait -= time.Duration(float64(wait) * 0.2 * rand.Float64())
	if temporary {
		wait = max(wait, min(e.after, mostPatience))
	}
	p.until, p.err = now.Add(wait), err
}
