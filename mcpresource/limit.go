package mcpresource

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/limits"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/message"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/rules"
)

// begin counts a request as running until release. It runs before the body is read: otherwise one
// caller could have any number of requests waiting for their bodies.
func (g *Guard) begin(p *passage) *refusal {
	if p.principal == nil || g.c.Limits.Concurrent <= 0 {
		return nil
	}
	p.underway = p.person()
	if g.underway.Add(p.underway, 1) > g.c.Limits.Concurrent {
		return p.limited("Too many requests at once.", time.Second)
	}
	return nil
}

// rate counts the operations of a message.
func (g *Guard) rate(ctx context.Context, p *passage) *refusal {
	if p.principal == nil {
		return nil
	}
	for _, m := range p.envelope.Messages {
		if wait, ok := g.c.Limiter.Allow(ctx, p.principal, rules.OperationOf(m)); !ok {
			return p.limited("Too many requests.", max(wait, time.Second))
		}
	}
	return nil
}

// person returns the key that a request counts under. All requests without a token share one.
func (p *passage) person() string {
	if p.principal == nil {
		return anonymous
	}
	return p.who
}

func (p *passage) limited(text string, wait time.Duration) *refusal {
	return &refusal{
		outcome: OutcomeLimited, status: http.StatusTooManyRequests, id: p.envelope.ID, text: text, retry: wait,
	}
}

// Admit counts op for the caller in ctx against the guard's limits. It is for adapters of
// transports without HTTP requests, such as stdio; requests through Protect are already counted.
// Call release when op has ended. The error is a *LimitError or ErrNoCaller.
func (g *Guard) Admit(ctx context.Context, op Operation) (release func(), err error) {
	p, ok := FromContext(ctx)
	if !ok {
		return nil, ErrNoCaller
	}
	pass := &passage{principal: p, who: p.Person(), envelope: message.Envelope{Messages: []message.Message{
		{Method: op.Method, Name: op.Name, Arguments: op.Arguments},
	}}}
	refused := g.begin(pass)
	if refused == nil {
		refused = g.rate(ctx, pass)
	}
	if refused != nil {
		g.release(pass)
		return nil, &LimitError{RetryAfter: refused.retry}
	}
	return sync.OnceFunc(func() { g.release(pass) }), nil
}

// limitStrangers replaces a 401 with a 429 for an address that had too many of them.
func (g *Guard) limitStrangers(r *http.Request, p *passage, refused *refusal) *refusal {
	if refused.status != http.StatusUnauthorized || g.c.Limits.Strangers.PerSecond <= 0 {
		return refused
	}
	if wait := g.refusals.Take(limits.Draw(g.c.Limits.Strangers, limits.ByAddress(r.RemoteAddr))); wait > 0 {
		return p.limited("Too many requests.", max(wait, time.Second))
	}
	return refused
}
