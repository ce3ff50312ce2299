package mcpresource

import (
	"context"
	"net/http"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/message"
)

// maxSessionID bounds what callers can put into the table; an id may be a JWT.
const maxSessionID = 4 << 10

// sessionOf is the session that a request names. One of a revision without sessions names
// none, whatever its header says (MCP 2026-07-28, Streamable HTTP, "Earlier revisions").
func sessionOf(r *http.Request) string {
	if mcp.IsStateless(first(r.Header, mcp.HeaderVersion)) {
		return ""
	}
	return first(r.Header, mcp.HeaderSession)
}

// checkSession refuses a session that belongs to another person as if there were none
// (MCP Security Best Practices, "Session Hijacking"). It comes last: whose the request is, its
// token has said (RS-113).
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
		_, _, err = g.anonymousSessions.Owner(ctx, p.session) // counts as a use
	}
	switch {
	case err != nil:
		return p.unchecked(err)
	case known && !g.owns(owner, p.principal):
		return p.notFound()
	}
	p.belongs(owner)
	return nil
}

// owns reports whether a session is the caller's (SP-14).
func (g *Guard) owns(b Binding, p *Principal) bool {
	return p != nil && b.Person == p.Person() && (g.c.SessionOwner == OwnerPerson || b.Client == p.ClientID)
}

// Owner identifies whom a session that p has opened belongs to, by Config.SessionOwner: for
// adapters of transports whose sessions the guard does not see, and of libraries that bind
// sessions by themselves.
func (g *Guard) Owner(p *Principal) string {
	if g.c.SessionOwner == OwnerClient {
		return p.Key()
	}
	return p.Person()
}

// belongs notes whose session the caller uses, which is theirs.
func (p *passage) belongs(b Binding) {
	p.owner = b
	if p.principal != nil && b.Client != p.principal.ClientID {
		p.principal.openedBy = b.Client
	}
}

// opened is the binding of a session that the request has opened.
func (p *passage) opened() Binding {
	b := p.principal.binding()
	for _, m := range p.envelope.Messages {
		b.ShowsLinks = b.ShowsLinks || message.ShowsLinks(m.Capabilities)
	}
	return b
}

// connection names what a server without sessions has of one: the approval of a person for an application.
func (p *Principal) connection() string { return p.Key() + "\x00" + p.GrantID() }

// showsLinks reports whether the client said in initialize that it can show links. At a server without sessions
// that is its latest initialize with this approval, if it came to this replica.
func (g *Guard) showsLinks(ctx context.Context, p *passage) bool {
	if p.session != "" {
		return p.owner.ShowsLinks
	}
	b, _, _ := g.sessionless.Owner(ctx, p.principal.connection()) // in memory
	return b.ShowsLinks
}

func (p *Principal) binding() Binding { return Binding{Person: p.Person(), Client: p.ClientID} }

// claim binds a session whose owner is unknown, as after a restart or when a public method has
// opened it, to the first caller with a token; keep decides whether that stays. The binder has the
// last word about who was first.
func (g *Guard) claim(ctx context.Context, p *passage) *refusal {
	if refused := g.reserve(ctx, p, p.principal.Person(), g.c.Sessions, g.c.MaxSessions); refused != nil {
		return refused
	}
	b := p.principal.binding()
	b.Pending = true
	owner, err := g.c.Sessions.Claim(ctx, p.session, b)
	g.settle(p)
	switch {
	case err != nil:
		return p.unchecked(err)
	case !g.owns(owner, p.principal):
		return p.notFound()
	}
	p.belongs(owner)
	return nil
}

// anonymous owns the sessions that no caller with a token has used. No Key is like it.
const anonymous = "\x00"

var unowned = Binding{Person: anonymous}

// mayOpen stops a caller with too many sessions before the MCP library makes another,
// and all those together who have no token.
func (g *Guard) mayOpen(ctx context.Context, p *passage) *refusal {
	switch {
	case !p.envelope.Opens():
		return nil
	case p.principal == nil:
		return g.reserve(ctx, p, anonymous, g.anonymousSessions, g.c.MaxAnonymousSessions)
	}
	return g.reserve(ctx, p, p.principal.Person(), g.c.Sessions, g.c.MaxSessions)
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

// attribute decides whose sessions are by what the server answers: id is the session that it names.
// A claim counts after a 2xx, and the person for whom a session was opened goes before all who
// claimed its id earlier, or guessing ids would lock the owners out.
func (g *Guard) attribute(ctx context.Context, p *passage, status int, id string) *refusal {
	good := status >= 200 && status < 300
	if p.owner.Pending { // this request's claim, or that of another one under way
		if refused := g.keep(ctx, p, good); refused != nil {
			return refused
		}
	}
	if id == "" && good && p.session == "" && p.principal != nil && p.envelope.Opens() {
		_ = g.sessionless.Open(ctx, p.principal.connection(), p.opened()) // in memory
	}
	if id == "" || id == p.session || !good {
		return nil
	}
	defer g.settle(p)
	if err := g.bind(ctx, p, id); err != nil {
		return p.unchecked(err)
	}
	return nil
}

// keep makes a claim that the server has accepted last, and takes back another.
// The callers of requests that came while a claim was pending are looked at again by this.
func (g *Guard) keep(ctx context.Context, p *passage, accepted bool) *refusal {
	pending := p.owner
	p.owner = Binding{}
	if !accepted {
		g.forget(ctx, p.session, pending)
		return nil
	}
	owner, err := g.accept(ctx, p.session, pending)
	if err == nil && owner.Pending && g.owns(owner, p.principal) { // claimed again, by another application
		owner, err = g.accept(ctx, p.session, owner)
	}
	switch {
	case err != nil:
		return p.unchecked(err)
	case !g.owns(owner, p.principal):
		return p.notFound() // the server has opened it for another person meanwhile
	}
	p.owner = owner
	_ = g.anonymousSessions.Release(ctx, p.session, unowned) // in memory
	return nil
}

func (g *Guard) accept(ctx context.Context, id string, b Binding) (Binding, error) {
	b.Pending = false
	return g.c.Sessions.Claim(ctx, id, b)
}

// bind records a session that the server names: initialize opens it (MCP, Streamable HTTP,
// "Session Management").
func (g *Guard) bind(ctx context.Context, p *passage, id string) error {
	switch {
	case p.principal != nil && p.envelope.Opens():
		return g.c.Sessions.Open(ctx, id, p.opened())
	case p.principal != nil:
		_, err := g.c.Sessions.Claim(ctx, id, p.principal.binding())
		return err
	}
	if p.envelope.Opens() {
		if owner, known, err := g.c.Sessions.Owner(ctx, id); err != nil {
			return err
		} else if known {
			g.forget(ctx, id, owner)
		}
	}
	_, err := g.anonymousSessions.Claim(ctx, id, unowned)
	return err
}

// forget takes back whom a session belonged to.
func (g *Guard) forget(ctx context.Context, id string, owner Binding) {
	if err := g.c.Sessions.Release(context.WithoutCancel(ctx), id, owner); err != nil {
		g.c.Logger.WarnContext(ctx, "session not released", "error", err)
	}
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
	if p.owner.Pending { // nothing was answered
		g.forget(context.Background(), p.session, p.owner)
		p.owner = Binding{}
	}
	if p.held > 0 {
		g.c.Bodies.give(p.person(), p.held)
		p.held = 0
	}
	if p.underway != "" {
		g.underway.add(p.underway, -1)
		p.underway = ""
	}
}

func (p *passage) notFound() *refusal { // RS-110
	return &refusal{outcome: OutcomeSession, status: http.StatusNotFound, id: p.envelope.ID, text: "Session not found."}
}

func (p *passage) unchecked(err error) *refusal {
	return &refusal{
		outcome: OutcomeUnavailable, status: http.StatusServiceUnavailable, id: p.envelope.ID,
		text: "This cannot be checked now.", retry: time.Second, err: err,
	}
}
