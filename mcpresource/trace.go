package mcpresource

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/message"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/rules"
)

// Tracer traces requests through the guard. Package otelmcp implements it for OpenTelemetry; this
// package does not depend on it. Its methods must not block.
type Tracer interface {
	// Judge is called before a request is checked. It returns the context for the checks, and a
	// function that is called with the outcome.
	Judge(r *http.Request) (ctx context.Context, judged func(Outcome))
	// Call is called for each call in a readable message, once the guard has decided about it. The
	// context is the result of Judge.
	Call(ctx context.Context, c TracedCall) CallSpan
}

// CallSpan is the trace of a call.
type CallSpan interface {
	// Within returns ctx with the call in it, for work that belongs to the call.
	Within(ctx context.Context) context.Context
	// End is called once, with the outcome and the HTTP status, which is 0 without a response.
	End(outcome Outcome, status int)
}

// TracedCall describes a call to a Tracer. All fields except Began and Principal are unverified
// data from the client.
type TracedCall struct {
	Began     time.Time  // when its request arrived
	Principal *Principal // nil for a method that requires no token, and for a caller without one
	Method    string     // such as "tools/call"; at most 256 bytes, as Name
	Name      string     // of the tool or prompt, or the URI
	ID        json.RawMessage
	Session   string          // "" for none; with it and a token of its owner, requests can be sent
	Revision  string          // the MCP revision in the header
	Arguments json.RawMessage // with any personal data in them
	// TraceParent and TraceState are from params._meta, which overrides the HTTP headers (SEP-414).
	// They are "" if absent or longer than 512 bytes. Baggage is omitted: it is for the server, not
	// for logs.
	TraceParent, TraceState string
}

// traced holds the calls of a request.
type traced struct {
	spans    []CallSpan
	reported atomic.Pointer[Outcome] // from an adapter
}

// judgeTraced is judge with tracing.
func (g *Guard) judgeTraced(w http.ResponseWriter, r *http.Request) (*passage, *refusal) {
	if g.c.Tracer == nil {
		return g.judge(w, r)
	}
	ctx, judged := g.c.Tracer.Judge(r)
	p, refused := g.judge(w, r.WithContext(ctx))
	outcome := OutcomeAllowed
	if refused != nil {
		outcome = refused.outcome
	}
	judged(outcome)
	if p != nil {
		g.follow(ctx, r, p)
	}
	return p, refused
}

// follow starts tracing the calls of a request.
func (g *Guard) follow(ctx context.Context, r *http.Request, p *passage) {
	t := &traced{}
	for _, m := range p.envelope.Messages {
		if m.Method == "" || m.Implied {
			continue
		}
		kept := rules.Recorded(rules.OperationOf(m), false)
		c := TracedCall{
			Began: p.began, Principal: p.principal, Method: kept.Method, Name: kept.Name, ID: m.ID,
			Session: p.session, Revision: first(r.Header, mcp.HeaderVersion), Arguments: m.Arguments,
		}
		c.TraceParent, c.TraceState = message.TraceContext(m.Meta)
		t.spans = append(t.spans, g.c.Tracer.Call(ctx, c))
	}
	if len(t.spans) == 0 {
		return
	}
	p.caller.traced = t
}

// within returns ctx with the call of the request in it. The calls of a batch run together, so
// their work cannot be assigned to one of them.
func (t *traced) within(ctx context.Context) context.Context {
	if t == nil || len(t.spans) != 1 {
		return ctx
	}
	return t.spans[0].Within(ctx)
}

// report records the outcome from an adapter, which knows more than the HTTP status.
func (t *traced) report(outcome Outcome) {
	if t != nil && len(t.spans) == 1 {
		t.reported.Store(&outcome)
	}
}

func (t *traced) end(outcome Outcome, status int) {
	if t == nil {
		return
	}
	if said := t.reported.Load(); said != nil && outcome == OutcomeOK {
		outcome = *said
	}
	for _, s := range t.spans {
		s.End(outcome, status)
	}
}
