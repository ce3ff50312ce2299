package mcpresource

import (
	"context"
	"net/http"
	"slices"
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
	if err == nil && !known {
		if p.principal != nil {
			return g.claim(ctx, p)
		}
		_, _, err = g.strangers.Owner(ctx, p.session) // counts as a use
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
	if no := g.reserve(ctx, p, key, g.c.Sessions, g.c.MaxSessions); no != nil {
		return no
	}
	if err := g.c.Sessions.Bind(ctx, p.session, key); err != nil {
		return p.unchecked(err)
	}
	g.settle(p)
	owner, known, err := g.c.Sessions.Owner(ctx, p.session)
	switch {
	case err != nil:
		return p.unchecked(err)
	case !known || owner != key:
		return p.notFound()
	}
	p.claimed = true
	_ = g.strangers.Release(ctx, p.session) // in memory
	return nil
}

// anonymous owns the sessions that nobody with a token has used. No Key is like it.
const anonymous = "\x00"

// mayOpen stops a caller with too many sessions before the MCP library makes another,
// and all those together who have no token.
func (g *Guard) mayOpen(ctx context.Context, p *passage) *refusal {
	opens := func(op Operation) bool { return op.Method == "initialize" }
	switch {
	case !slices.ContainsFunc(p.envelope.ops, opens):
		return nil
	case p.principal == nil:
		return g.reserve(ctx, p, anonymous, g.strangers, g.c.MaxAnonymousSessions)
	}
	return g.reserve(ctx, p, p.principal.Key(), g.c.Sessions, g.c.MaxSessions)
}

// reserve counts a session that is about to be bound, until settle. It counts before
// it looks, so that of many at once no more pass than may.
func (g *Guard) reserve(ctx context.Context, p *passage, owner string, table SessionBinder, most int) *refusal {
	if most < 0 {
		return nil
	}
	p.reserved = owner
	opening := g.opening.add(owner, 1)
	live, err := table.Live(ctx, owner)
	switch {
	case err != nil:
		return p.unchecked(err)
	case live+opening > most:
		return p.limited("Too many sessions.", time.Minute)
	}
	return nil
}

// bind records whose session it is that the server has opened.
func (g *Guard) bind(ctx context.Context, p *passage, id string) error {
	defer g.settle(p)
	if p.principal == nil {
		return g.strangers.Bind(ctx, id, anonymous)
	}
	return g.c.Sessions.Bind(ctx, id, p.principal.Key())
}

// settle ends what reserve began.
func (g *Guard) settle(p *passage) {
	if p.reserved != "" {
		g.opening.add(p.reserved, -1)
		p.reserved = ""
	}
}

// release gives back what a request holds while it is under way.
func (g *Guard) release(p *passage) {
	if p == nil {
		return
	}
	g.settle(p)
	if p.held > 0 {
		g.c.Bodies.give(p.person(), p.held)
		p.held = 0
	}
	if p.underway != "" {
		g.underway.add(p.underway, -1)
		p.underway = ""
	}
}

func (p *passage) notFound() *refusal {
	return &refusal{outcome: "session", status: http.StatusNotFound, id: p.envelope.id, text: "Session not found."}
}

func (p *passage) unchecked(err error) *refusal {
	return &refusal{outcome: "unavailable", status: http.StatusServiceUnavailable, id: p.envelope.id, text: "This cannot be checked now.", retry: time.Second, err: err}
}
