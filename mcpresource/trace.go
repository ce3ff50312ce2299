package mcpresource

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/message"
)

// Tracer follows requests through the guard, for traces. Package otelmcp has one for OpenTelemetry;
// this package knows none. Its functions must not block.
type Tracer interface {
	// Judge is called before a request is judged. It returns the context in which that is done, and a
	// function that is called with the outcome.
	Judge(r *http.Request) (ctx context.Context, judged func(Outcome))
	// Call is called for each call in a message that could be read, when it has been decided whether it
	// goes on. The context is the one that Judge has returned.
	Call(ctx context.Context, c TracedCall) CallSpan
}

// CallSpan is a call that a Tracer follows.
type CallSpan interface {
	// Within returns ctx with the call in it, for what is done on its behalf.
	Within(ctx context.Context) context.Context
	// End is called once: how the call ended, and the HTTP status, 0 when nothing was answered.
	End(outcome Outcome, status int)
}

// TracedCall is what a Tracer is told of a call. All but Began and Principal is the client's word.
type TracedCall struct {
	Began     time.Time  // when its request came
	Principal *Principal // nil for a method that needs no token, and for a caller who has none
	Method    string     // such as "tools/call"; cut after 256 bytes, as Name is
	Name      string     // of the tool or prompt, or the URI
	ID        json.RawMessage
	Session   string          // "" for none; with it and a token of its owner, requests can be sent
	Revision  string          // of MCP, as the header says
	Arguments json.RawMessage // with any personal data in them
	// TraceParent and TraceState are those of params._meta, which go before the headers of HTTP
	// (SEP-414); "" when they are absent or longer than 512 bytes. There is no baggage: it is for
	// whom the client sends it to, and not for logs.
	TraceParent, TraceState string
}

// traced are the calls of a request.
type traced struct {
	spans    []CallSpan
	reported atomic.Pointer[Outcome] // by an adapter
}

// judgeTraced is judge, followed by the Tracer.
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

// follow begins to follow the calls of a request.
func (g *Guard) follow(ctx context.Context, r *http.Request, p *passage) {
	t := &traced{}
	for _, m := range p.envelope.Messages {
		if m.Method == "" || m.Implied {
			continue
		}
		kept := operationOf(m).record(false)
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
	p.traced = t
	if p.principal != nil {
		p.principal.traced = t
	}
}

// within returns ctx with the call of the request in it. Several calls of a batch go on together, and
// nothing tells on whose behalf something is done then.
func (t *traced) within(ctx context.Context) context.Context {
	if t == nil || len(t.spans) != 1 {
		return ctx
	}
	return t.spans[0].Within(ctx)
}

// report notes what an adapter says of a call: it sees more than a status.
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
