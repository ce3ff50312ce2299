package mcpresource

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"
)

// maxSessionID bounds what callers can put into the table; an id may be a JWT.
const maxSessionID = 4 << 10

// checkSession refuses a session that belongs to somebody else as if there were none
// (MCP Security Best Practices, "Session Hijacking").
func (g *Guard) checkSession(ctx context.Context, p *passage) *refusal {
	switch {
	case p.session == "":
		return g.mayOpen(ctx, p)
	case len(p.session) > maxSessionID:
		return p.notFound()
	}
	owner, known, err := g.c.Sessions.Owner(ctx, p.session)
	if err == nil && !known && p.principal != nil {
		return g.claim(ctx, p)
	}
	switch {
	case err != nil:
		return p.unchecked(err)
	case known && owner != p.principal.Key():
		return p.notFound()
	}
	return nil
}

// claim binds a session that a public method has opened to the first caller with a
// token. The binder has the last word about who was first.
func (g *Guard) claim(ctx context.Context, p *passage) *refusal {
	key := p.principal.Key()
	if no := g.reserve(ctx, p); no != nil {
		return no
	}
	if err := g.c.Sessions.Bind(ctx, p.session, key); err != nil {
		return p.unchecked(err)
	}
	g.release(p)
	owner, known, err := g.c.Sessions.Owner(ctx, p.session)
	switch {
	case err != nil:
		return p.unchecked(err)
	case !known || owner != key:
		return p.notFound()
	}
	p.claimed = true
	return nil
}

// mayOpen stops a caller with too many sessions before the MCP library makes another.
func (g *Guard) mayOpen(ctx context.Context, p *passage) *refusal {
	opens := func(op Operation) bool { return op.Method == "initialize" }
	if p.principal == nil || !slices.ContainsFunc(p.envelope.ops, opens) {
		return nil
	}
	return g.reserve(ctx, p)
}

// reserve counts a session that is about to be bound, until release. It counts before
// it looks, so that of many at once no more pass than may.
func (g *Guard) reserve(ctx context.Context, p *passage) *refusal {
	if g.c.MaxSessions < 0 {
		return nil
	}
	key := p.principal.Key()
	p.reserved = key
	opening := g.opening.add(key, 1)
	live, err := g.c.Sessions.Live(ctx, key)
	switch {
	case err != nil:
		return p.unchecked(err)
	case live+opening > g.c.MaxSessions:
		return &refusal{outcome: "limited", status: http.StatusTooManyRequests, id: p.envelope.id, text: "Too many sessions.", retry: time.Minute}
	}
	return nil
}

// release ends what reserve began.
func (g *Guard) release(p *passage) {
	if p != nil && p.reserved != "" {
		g.opening.add(p.reserved, -1)
		p.reserved = ""
	}
}

func (p *passage) notFound() *refusal {
	return &refusal{outcome: "session", status: http.StatusNotFound, id: p.envelope.id, text: "Session not found."}
}

func (p *passage) unchecked(err error) *refusal {
	return &refusal{outcome: "unavailable", status: http.StatusServiceUnavailable, id: p.envelope.id, text: "The session cannot be checked now.", retry: time.Second, err: err}
}

// openings counts the sessions that each caller is about to open.
type openings struct {
	mu sync.Mutex // guards n
	n  map[string]int
}

func (o *openings) add(key string, d int) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n == nil {
		o.n = map[string]int{}
	}
	n := o.n[key] + d
	if o.n[key] = n; n == 0 {
		delete(o.n, key)
	}
	return n
}
