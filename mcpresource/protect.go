package mcpresource

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/internal/stopping"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/token"
)

// Protect returns next behind the guard. It is plain net/http middleware: it never buffers a
// response, and supports Flush and the like.
func (g *Guard) Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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

// goesOn handles the result of the checks, and reports whether the request proceeds.
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

// passage collects the results of the steps of a request. Each embedded part is the result of one
// step, which stores it in its check.
type passage struct {
	began     time.Time
	at        *address
	identity         // from callers
	received         // from bodies
	demanded         // from permissions
	place            // from sessions; session is set from the start
	clearance string // from approvals: the ID of the requested or used approval
	taken
}

// taken lists the resources that a request has taken, until release.
type taken struct {
	underway string // the person whose running requests include this one
	held     int64  // bytes of the body that count
	reserved string // the person with a reserved session
}

// judge runs the steps of a request. They run in this order, each with the status for a request
// that fails it:
//
//	sites        Host, Origin                                               403
//	preflights   a CORS preflight                                           204
//	callers      the Authorization header                                   401, 400
//	             the token, and whether it can be validated now             401, 503
//	             issuer, audience and times                                 401
//	             the proof of a bound token                                 401
//	load         the caller's number of running requests                    429
//	methods      the method                                                 405
//	bodies       the body: size, time, memory of all bodies                 413, 408, 429, 503
//	             the envelope; headers that are repeated or differ from it  400
//	permissions  the scopes of the operation, all of them named             403
//	rates        the rate                                                   429
//	objects      Config.Check                                               403, 503
//	sessions     the owner of the session, the number of their sessions     404, 429
//	approvals    the approval, if the call needs one                        200, 403, 401, 503
//
// A nil passage means that the request was already answered.
func (g *Guard) judge(w http.ResponseWriter, r *http.Request) (*passage, *refusal) {
	p := &passage{began: g.c.Now(), at: g.at(r), place: place{session: sessionOf(r)}}
	for _, s := range g.steps {
		switch refused := s.check(w, r, p); refused {
		case nil:
		case answered:
			return nil, nil
		default:
			return p, refused
		}
	}
	return p, nil
}

// step is one check of a request, or a few related checks. It stores its results in the passage.
type step interface {
	check(w http.ResponseWriter, r *http.Request, p *passage) *refusal
}

// answered is the result of a step that has answered the request.
var answered = &refusal{}

// forward passes the request on: with the caller in the context, without the token, and until the
// token ends.
func (g *Guard) forward(w http.ResponseWriter, r *http.Request, p *passage, next http.Handler) {
	ctx := r.Context()
	if p.principal == nil { // NewContext does this for a caller
		ctx = p.caller.Within(ctx)
	}
	ctx, end := context.WithCancelCause(NewContext(ctx, token.WithCredential(p.principal, p.caller.sent)))
	defer end(nil)
	ctx, done := g.timed(ctx, p)
	defer done()
	if p.principal != nil {
		j := g.judging(ctx, end, p)
		defer j.stop()
		ctx = j
	}
	if p.listens {
		defer stopping.OnBegin(ctx, func() { end(stopping.Err) })()
	}
	watched := &watcher{ResponseWriter: w, guard: g, request: r, passage: p, end: end, ended: ctx}
	defer watched.close()
	g.serve(ctx, watched, p.outgoing(ctx, r), next)
	if r.Method == http.MethodDelete && p.session != "" && watched.gone() {
		g.sessions.forget(ctx, p.session, p.owner)
	}
}

// outgoing returns the request for the handler. It contains only checked parts: no body except of a
// POST.
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

// judgedBody is the body of a request that proceeds. It is already read, so a handler can get all
// of it without reading it again.
type judgedBody struct {
	bytes.Reader
	text []byte
	name string
}

// Bytes returns the whole body. It must not be modified.
func (b *judgedBody) Bytes() []byte { return b.text }

// ReceivedName returns the header Mcp-Name as the client sent it if the guard decoded it, otherwise
// "". A handler in this process gets the decoded name; a proxy forwards this one.
func (b *judgedBody) ReceivedName() string { return b.name }

// Close implements io.Closer.
func (b *judgedBody) Close() error { return nil }

// headers returns a copy of the headers for the handler, without those that only the guard needs.
func (p *passage) headers(in http.Header) http.Header {
	n := 0
	for _, values := range in {
		n += len(values)
	}
	out, all := make(http.Header, len(in)+4), make([]string, 0, n) // capacity for headers added later
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

// endsHere reports whether a header is not passed to the handler.
func (p *passage) endsHere(name string) bool {
	switch name {
	case "Authorization", "Dpop": // RS-49
		return true
	case mcp.HeaderSession:
		// A server that uses it would access a session that the guard has not checked.
		return p.session == ""
	}
	return slices.Contains(overrides, name)
}

// serve runs the handler and records the outcome.
func (g *Guard) serve(ctx context.Context, w *watcher, out *http.Request, next http.Handler) {
	finished := false
	defer func() { g.conclude(ctx, w, finished) }()
	next.ServeHTTP(w, out)
	finished = true
}

// methods allows the methods of MCP, and HEAD and OPTIONS, which the server may support. It
// runs after authentication: clients probe with any method, and need the challenge to find where to
// sign in.
type methods struct{}

func (methods) check(_ http.ResponseWriter, r *http.Request, _ *passage) *refusal {
	switch r.Method {
	case http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodHead, http.MethodOptions:
		return nil
	}
	return &refusal{
		outcome: OutcomeMethod, status: http.StatusMethodNotAllowed, allow: "GET, POST, DELETE",
		text: "This method is not served here.",
	}
}

// overrides are headers that make some frameworks use another method than the checked one. The
// names are canonical.
var overrides = []string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"}

// Owner returns the owner of sessions that p opens, according to Config.SessionOwner. It is for
// adapters of transports whose sessions the guard does not see, and for libraries that bind
// sessions themselves.
func (g *Guard) Owner(p *Principal) string {
	if g.c.SessionOwner == OwnerClient {
		return p.Key()
	}
	return p.Person()
}

// release frees the resources of a request.
func (g *Guard) release(p *passage) {
	if p == nil {
		return
	}
	g.sessions.release(p)
	g.bodies.release(p)
	g.load.release(p)
}
