package mcpresource

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/internal/stopping"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/message"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Protect returns next behind the guard. It is plain net/http middleware: it never
// buffers a response, and passes on Flush and the like.
func (g *Guard) Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		growStack(len(r.Header))
		deadline := setBodyDeadline(w, r)
		pass, refused := g.judgeTraced(w, r) // each request by its own token: RS-38, SP-13
		defer g.release(pass)
		if !g.goesOn(w, r, pass, refused) {
			return // RS-48
		}
		if deadline {
			liftBodyDeadline(w)
		}
		g.forward(w, r, pass, next)
	})
}

// goesOn says what came of the checks, and reports whether the request goes on.
func (g *Guard) goesOn(w http.ResponseWriter, r *http.Request, p *passage, refused *refusal) bool {
	switch {
	case refused != nil:
		g.refuse(w, r, p, refused)
		return false
	case p == nil: // a preflight, answered
		return false
	}
	g.record(r, p, Event{Outcome: OutcomeAllowed})
	g.letThrough(r.Context(), p)
	return true
}

// passage is what has been found out about a request.
type passage struct {
	began     time.Time
	at        *address
	principal *Principal // nil for a public method
	who       string     // its Person, which is asked for again and again
	presented Credential // what the principal was judged by
	proof     reading    // of the principal, where a rule asks for it
	envelope  message.Envelope
	listens   bool // opens a stream that is meant to stay
	body      []byte
	name      string // the header Mcp-Name as it was sent, if it was decoded
	session   string
	owner     Binding      // of the session
	reserved  string       // who has a session reserved
	underway  string       // who has this request counted
	held      int64        // bytes of the body that are counted
	calls     atomic.Bool  // are reported by the handler
	bound     bool         // the token is, and was refused for that, or should be
	nonce     string       // for the next proof
	traced    *traced      // nil without a Tracer
	reference string       // of a refusal, see Decisions
	need      oauth.Scopes // of a call that a person has to approve
	demand    *demand
	clearance string // the id of what was asked, or has approved the call
}

// judge takes a request through every check. The order, each step with the answer to a request
// that does not pass it:
//
//	Host, Origin                                                   403
//	a CORS preflight                                               204
//	the Authorization header                                       401, 400
//	the token, and whether it can be judged now                    401, 503
//	issuer, audience and times                                     401
//	the proof of a bound token                                     401
//	how much of the caller's is under way                          429
//	the method                                                     405
//	the body: size, time, memory of all bodies                     413, 408, 429, 503
//	the envelope, headers that are repeated or differ from it      400
//	the scopes of the operation, all of them named                 403
//	the rate                                                       429
//	Config.Check                                                   403, 503
//	the owner of the session, how many sessions the caller has     404, 429
//	the permission of a person, if the call needs it               200, 403, 401, 503
//
// A passage that is nil has been answered.
func (g *Guard) judge(w http.ResponseWriter, r *http.Request) (*passage, *refusal) {
	p := &passage{began: g.c.Now(), at: g.at(r), session: sessionOf(r)}
	if refused := g.checkOrigin(r); refused != nil {
		return p, refused
	}
	if g.crossOrigin(w, r) {
		return nil, nil
	}
	unknown := g.authenticate(r, p) // nil for a verified caller
	if p.nonce != "" {
		w.Header().Set("DPoP-Nonce", p.nonce)
	}
	if unknown != nil && !g.mayBePublic(r, unknown) {
		return p, g.limitStrangers(r, p, unknown)
	}
	if refused := g.begin(p); refused != nil {
		return p, refused
	}
	if refused := checkMethod(r); refused != nil {
		return p, refused
	}
	if refused := g.readMessage(w, r, p); refused != nil {
		if unknown != nil {
			return p, g.limitStrangers(r, p, unknown) // nothing is said about a body to an unknown caller
		}
		return p, refused
	}
	if refused := g.authorize(r, p, unknown); refused != nil {
		return p, g.limitStrangers(r, p, refused)
	}
	if refused := g.rate(r.Context(), p); refused != nil {
		return p, refused
	}
	if refused := g.check(r.Context(), p); refused != nil {
		return p, refused
	}
	if refused := g.checkSession(r.Context(), p); refused != nil {
		return p, refused
	}
	return p, g.clear(w, r, p)
}

// forward hands the request on: with the caller in the context, without the token, and
// for as long as the token lasts.
func (g *Guard) forward(w http.ResponseWriter, r *http.Request, p *passage, next http.Handler) {
	ctx := r.Context()
	if p.principal == nil { // NewContext does so for a caller
		ctx = p.traced.within(ctx)
	}
	ctx, end := context.WithCancelCause(NewContext(ctx, p.principal.withCredential(p.presented)))
	defer end(nil)
	p.listens = r.Method == http.MethodGet || p.envelope.Streams()
	ctx, done := g.lifetime(ctx, end, p)
	defer done()
	if p.listens {
		defer stopping.OnBegin(ctx, func() { end(stopping.Err) })()
	}
	watched := &watcher{ResponseWriter: w, guard: g, request: r, passage: p, end: end, ended: ctx}
	defer watched.close()
	g.serve(ctx, watched, p.outgoing(ctx, r), next)
	if r.Method == http.MethodDelete && p.session != "" && watched.gone() {
		g.forget(ctx, p.session, p.owner)
	}
}

// outgoing is the request as it goes on. Only what has been judged does: no body but that of
// a POST.
func (p *passage) outgoing(ctx context.Context, r *http.Request) *http.Request {
	out, target := r.WithContext(ctx), *r.URL
	out.Header, out.URL = p.headers(r.Header), &target
	out.Body, out.ContentLength, out.TransferEncoding, out.Trailer = http.NoBody, 0, nil, nil
	if p.body != nil {
		body := &judgedBody{text: p.body, name: p.name}
		body.Reset(p.body)
		out.Body, out.ContentLength = body, int64(len(p.body))
	}
	return out
}

// judgedBody is the body of a request that goes on. It has been read, so that a handler which needs all of it
// can have it without reading it once more.
type judgedBody struct {
	bytes.Reader
	text []byte
	name string
}

// Bytes returns the whole body, which is not to be changed.
func (b *judgedBody) Bytes() []byte { return b.text }

// ReceivedName returns the header Mcp-Name as the client sent it, if the guard has decoded it, and "" otherwise. A
// handler in this process has the decoded name; a proxy sends this one on.
func (b *judgedBody) ReceivedName() string { return b.name }

// Close implements io.Closer.
func (b *judgedBody) Close() error { return nil }

// headers are those that go on: a copy, in which nothing is that the guard alone has use for.
func (p *passage) headers(in http.Header) http.Header {
	n := 0
	for _, values := range in {
		n += len(values)
	}
	out, all := make(http.Header, len(in)+4), make([]string, 0, n) // some are added on the way
	for name, values := range in {
		if p.endsHere(name) {
			continue
		}
		from := len(all)
		all = append(all, values...)
		out[name] = all[from:len(all):len(all)]
	}
	return out
}

// endsHere reports whether a header ends at the guard, and does not reach the handler.
func (p *passage) endsHere(name string) bool {
	switch name {
	case "Authorization", "Dpop": // RS-49
		return true
	case mcp.HeaderSession:
		// A server that does not ignore it would use a session that the guard has not checked.
		return p.session == ""
	}
	return slices.Contains(overrides, name)
}

// serve runs the handler and says how that ended.
func (g *Guard) serve(ctx context.Context, w *watcher, out *http.Request, next http.Handler) {
	finished := false
	defer func() { g.conclude(ctx, w, finished) }()
	next.ServeHTTP(w, out)
	finished = true
}

// checkMethod admits what MCP uses, and HEAD and OPTIONS, which the server may know.
// It comes after authentication: clients probe with any method, and learn from the
// challenge where to sign in.
func checkMethod(r *http.Request) *refusal {
	switch r.Method {
	case http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodHead, http.MethodOptions:
		return nil
	}
	return &refusal{
		outcome: OutcomeMethod, status: http.StatusMethodNotAllowed, allow: "GET, POST, DELETE",
		text: "This method is not served here.",
	}
}

// overrides make some frameworks see another method than the one that was judged. They are
// canonical.
var overrides = []string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"}
