package mcpresource

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/limits"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/message"
)

// maxSessionID is the maximum length of a stored id; an id may be a JWT.
const maxSessionID = 4 << 10

// sessionOf returns the session id of a request. It is "" for revisions without sessions, whatever
// the header says (MCP 2026-07-28, Streamable HTTP, "Earlier revisions").
func sessionOf(r *http.Request) string {
	if mcp.IsStateless(first(r.Header, mcp.HeaderVersion)) {
		return ""
	}
	return first(r.Header, mcp.HeaderSession)
}

// sessions are the sessions of a server, and their owners.
type sessions struct {
	bound         SessionBinder
	anonymous     SessionBinder // sessions only used without a token
	sessionless   SessionBinder // initialize data of clients of servers without sessions
	ownedBy       SessionOwner
	most          int          // of one user
	mostAnonymous int          // of all callers without a token
	opening       limits.Tally // sessions about to be opened
	log           *slog.Logger
}

// place is the session of a request.
type place struct {
	session string
	owner   Binding // of the session
}

func newSessions(c *Config) *sessions {
	return &sessions{
		bound: c.Sessions, anonymous: limits.NewMemory(c.MaxAnonymousSessions, c.Now),
		sessionless: limits.NewMemory(0, c.Now), ownedBy: c.SessionOwner,
		most: c.MaxSessions, mostAnonymous: c.MaxAnonymousSessions, log: c.Logger,
	}
}

// check refuses another user's session as if it did not exist (MCP Security Best Practices,
// "Session Hijacking"). It runs last: the token, not the session, identifies the caller (RS-113).
func (s *sessions) check(_ http.ResponseWriter, r *http.Request, p *passage) *refusal {
	if p.session == "" {
		return s.mayOpen(r.Context(), p)
	}
	owner, refused := s.find(r.Context(), p)
	if refused == nil {
		p.belongs(owner)
	}
	return refused
}

// find returns the binding of the caller's session.
func (s *sessions) find(ctx context.Context, p *passage) (Binding, *refusal) {
	if len(p.session) > maxSessionID {
		return Binding{}, p.notFound()
	}
	owner, known, err := s.bound.Owner(ctx, p.session)
	if err == nil && !known {
		if p.principal != nil {
			return s.claim(ctx, p)
		}
		_, _, err = s.anonymous.Owner(ctx, p.session) // counts as a use
	}
	switch {
	case err != nil:
		return Binding{}, p.unchecked(err)
	case known && !s.owns(owner, p.principal):
		return Binding{}, p.notFound()
	}
	return owner, nil
}

// owns reports whether a session belongs to the caller (SP-14).
func (s *sessions) owns(b Binding, p *Principal) bool {
	return p != nil && b.Person == p.Person() && (s.ownedBy == OwnerPerson || b.Client == p.ClientID)
}

// belongs records the session's binding, which belongs to the caller.
func (p *passage) belongs(b Binding) {
	p.owner = b
	if p.principal != nil && b.Client != p.principal.ClientID {
		p.caller.openedBy = b.Client
	}
}

// opened returns the binding of a session that the request opened.
func (p *passage) opened() Binding {
	b := bindingOf(p.principal)
	for _, m := range p.envelope.Messages {
		b.ShowsLinks = b.ShowsLinks || message.ShowsLinks(m.Capabilities)
	}
	return b
}

// connection returns the key of a client at a server without sessions: a user's consent for an
// application.
func connection(p *Principal) string { return p.Key() + "\x00" + p.GrantID() }

// showsLinks reports whether the client declared in initialize that it can show links. At a server
// without sessions, the latest initialize with this consent counts, if this replica received it.
func (s *sessions) showsLinks(ctx context.Context, p *passage) bool {
	if p.session != "" {
		return p.owner.ShowsLinks
	}
	b, _, _ := s.sessionless.Owner(ctx, connection(p.principal)) // in memory
	return b.ShowsLinks
}

func bindingOf(p *Principal) Binding { return Binding{Person: p.Person(), Client: p.ClientID} }

// claim binds a session without a known owner to the first caller with a token. That happens after
// a restart or when a public method opened it. keep decides whether the claim stays, and the binder
// which claim was first.
func (s *sessions) claim(ctx context.Context, p *passage) (Binding, *refusal) {
	if refused := s.reserve(ctx, p, p.principal.Person(), s.bound, s.most); refused != nil {
		return Binding{}, refused
	}
	b := bindingOf(p.principal)
	b.Pending = true
	owner, err := s.bound.Claim(ctx, p.session, b)
	s.settle(p)
	switch {
	case err != nil:
		return Binding{}, p.unchecked(err)
	case !s.owns(owner, p.principal):
		return Binding{}, p.notFound()
	}
	return owner, nil
}

// anonymous owns the sessions that no caller with a token has used. It differs from every Key.
const anonymous = "\x00"

var unowned = Binding{Person: anonymous}

// mayOpen refuses a caller with too many sessions before the MCP library opens another. All callers
// without a token count together.
func (s *sessions) mayOpen(ctx context.Context, p *passage) *refusal {
	switch {
	case !p.envelope.Opens():
		return nil
	case p.principal == nil:
		return s.reserve(ctx, p, anonymous, s.anonymous, s.mostAnonymous)
	}
	return s.reserve(ctx, p, p.principal.Person(), s.bound, s.most)
}

// reserve counts a session that is about to be bound, until settle. It counts before it checks, so
// that concurrent requests cannot exceed the limit.
func (s *sessions) reserve(ctx context.Context, p *passage, owner string, table SessionBinder, most int) *refusal {
	if most < 0 {
		return nil
	}
	p.reserved = owner
	opening := s.opening.Add(owner, 1)
	live, err := table.Live(ctx, owner)
	switch {
	case err != nil:
		return p.unchecked(err)
	case live+opening > most:
		return p.limited("Too many sessions.", time.Minute)
	}
	return nil
}

// attribute assigns the owner of a session from the server's response, where id is the session that
// it names. A claim counts after a 2xx. The user for whom a session was opened overrides earlier
// claims of its id: otherwise guessing ids would lock owners out.
func (s *sessions) attribute(ctx context.Context, p *passage, status int, id string) *refusal {
	good := status >= 200 && status < 300
	if p.owner.Pending { // the claim of this request, or of a concurrent one
		if refused := s.keep(ctx, p, good); refused != nil {
			return refused
		}
	}
	if id == "" && good && p.session == "" && p.principal != nil && p.envelope.Opens() {
		_ = s.sessionless.Open(ctx, connection(p.principal), p.opened()) // in memory
	}
	if id == "" || id == p.session || !good {
		return nil
	}
	defer s.settle(p)
	if err := s.bind(ctx, p, id); err != nil {
		return p.unchecked(err)
	}
	return nil
}

// keep makes an accepted claim permanent, and withdraws another. It also checks again the callers
// of requests that arrived while a claim was pending.
func (s *sessions) keep(ctx context.Context, p *passage, accepted bool) *refusal {
	pending := p.owner
	p.owner = Binding{}
	if !accepted {
		s.forget(ctx, p.session, pending)
		return nil
	}
	owner, err := s.accept(ctx, p.session, pending)
	if err == nil && owner.Pending && s.owns(owner, p.principal) { // claimed again by another application
		owner, err = s.accept(ctx, p.session, owner)
	}
	switch {
	case err != nil:
		return p.unchecked(err)
	case !s.owns(owner, p.principal):
		return p.notFound() // the server opened it for another user meanwhile
	}
	p.owner = owner
	_ = s.anonymous.Release(ctx, p.session, unowned) // in memory
	return nil
}

func (s *sessions) accept(ctx context.Context, id string, b Binding) (Binding, error) {
	b.Pending = false
	return s.bound.Claim(ctx, id, b)
}

// bind records a session that the server names: initialize opens it (MCP, Streamable HTTP, "Session
// Management").
func (s *sessions) bind(ctx context.Context, p *passage, id string) error {
	switch {
	case p.principal != nil && p.envelope.Opens():
		return s.bound.Open(ctx, id, p.opened())
	case p.principal != nil:
		_, err := s.bound.Claim(ctx, id, bindingOf(p.principal))
		return err
	}
	if p.envelope.Opens() {
		if owner, known, err := s.bound.Owner(ctx, id); err != nil {
			return err
		} else if known {
			s.forget(ctx, id, owner)
		}
	}
	_, err := s.anonymous.Claim(ctx, id, unowned)
	return err
}

func (s *sessions) forget(ctx context.Context, id string, owner Binding) {
	if err := s.bound.Release(context.WithoutCancel(ctx), id, owner); err != nil {
		s.log.WarnContext(ctx, "session not released", "error", err)
	}
}

// settle ends the reservation of reserve.
func (s *sessions) settle(p *passage) {
	if p.reserved != "" {
		s.opening.Add(p.reserved, -1)
		p.reserved = ""
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

// SessionOwner selects who owns a session.
type SessionOwner int

const (
	// OwnerPerson means the user, with any application: one that registers again for more scopes
	// can continue its session. Each request is checked by its own token.
	OwnerPerson SessionOwner = iota
	// OwnerClient means the user with one application. Other applications get 404.
	OwnerClient
)

// release ends the request's reservation, and withdraws its claim of a session if no response
// decided it.
func (s *sessions) release(p *passage) {
	s.settle(p)
	if p.owner.Pending { // the server sent no response
		s.forget(context.Background(), p.session, p.owner)
		p.owner = Binding{}
	}
}
