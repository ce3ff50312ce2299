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

// load counts the running requests of callers, and requests without a valid token.
type load struct {
	limits   Limits
	underway limits.Tally
	refusals *limits.Buckets // of requests without a valid token
}

func (l *load) check(_ http.ResponseWriter, _ *http.Request, p *passage) *refusal { return l.begin(p) }

// release stops counting a request.
func (l *load) release(p *passage) {
	if p.underway != "" {
		l.underway.Add(p.underway, -1)
		p.underway = ""
	}
}

// begin counts a request as running until release. It runs before the body is read: otherwise one
// caller could have any number of requests waiting for their bodies.
func (l *load) begin(p *passage) *refusal {
	if p.principal == nil || l.limits.Concurrent <= 0 {
		return nil
	}
	p.underway = p.person()
	if l.underway.Add(p.underway, 1) > l.limits.Concurrent {
		return p.limited("Too many requests at once.", time.Second)
	}
	return nil
}

// rates is the step that counts the operations of a message.
type rates struct{ limiter Limiter }

func (l rates) check(_ http.ResponseWriter, r *http.Request, p *passage) *refusal {
	return l.count(r.Context(), p)
}

func (l rates) count(ctx context.Context, p *passage) *refusal {
	if p.principal == nil {
		return nil
	}
	for _, m := range p.envelope.Messages {
		if wait, ok := l.limiter.Allow(ctx, p.principal, rules.OperationOf(m)); !ok {
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
	pass := &passage{identity: identity{principal: p, who: p.Person()}}
	pass.envelope.Messages = []message.Message{{Method: op.Method, Name: op.Name, Arguments: op.Arguments}}
	refused := g.load.begin(pass)
	if refused == nil {
		refused = rates{g.c.Limiter}.count(ctx, pass)
	}
	if refused != nil {
		g.release(pass)
		return nil, &LimitError{RetryAfter: refused.retry}
	}
	return sync.OnceFunc(func() { g.release(pass) }), nil
}

// strangers replaces a 401 with a 429 for an address that had too many of them.
func (l *load) strangers(r *http.Request, p *passage, refused *refusal) *refusal {
	if refused.status != http.StatusUnauthorized || l.limits.Strangers.PerSecond <= 0 {
		return refused
	}
	if wait := l.refusals.Take(limits.Draw(l.limits.Strangers, limits.ByAddress(r.RemoteAddr))); wait > 0 {
		return p.limited("Too many requests.", max(wait, time.Second))
	}
	return refused
}
