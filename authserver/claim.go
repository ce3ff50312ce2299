package authserver

import (
	"context"
	"net/http"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/delegation"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/web"
)

// claimState is what the form carries along that asks whether an account at a provider is
// the person's: sealed, bound to the browser, and good once, for its ticket is.
type claimState struct {
	Ticket   string       `json:"t"`
	Provider string       `json:"p"`
	Label    string       `json:"l"`
	Subject  string       `json:"s"`
	UserID   string       `json:"u"`
	Session  storage.Hash `json:"b"` // who is asked, in this very session
	Connect  string       `json:"c,omitempty"`
	username string
}

// question asks whether the account that came back is the person's, before anything ties
// it to them: what is signed in at the provider in this browser may be somebody else's, who
// would be them here from then on (RFC 6749 §10.12).
func (s *Server) question(ctx context.Context, a delegation.Result, state tripState, token storage.Hash) landing {
	c := claimState{
		Ticket: a.Claim.Ticket, Provider: a.Request.Provider, Label: a.Claim.Label, Subject: a.Claim.Subject,
		UserID: a.Request.UserID, Session: token, Connect: state.Connect,
	}
	user, err := s.claimant(ctx, c)
	c.username = user.Name
	return landing{decision: decision{err: err}, over: true, claim: &c}
}

func (s *Server) showClaim(w http.ResponseWriter, r *http.Request, c claimState) {
	p, _ := s.ways().provider(c.Provider)
	step, err := s.sessions.SealStep(purposeClaim, s.sessions.Browser(w, r), c)
	if err != nil {
		s.showError(w, r, http.StatusBadRequest, err)
		return
	}
	s.pages.Claim(w, web.Claim{
		Action: s.paths.claim, Step: step, Provider: providerView(p), Label: c.Label, Subject: c.Subject, Username: c.username,
	})
}

// claimant returns the user who is asked, if their session is still the browser's.
func (s *Server) claimant(ctx context.Context, c claimState) (storage.User, error) {
	v, err := s.visitor(ctx, c.Session, storage.VisitKey{})
	switch {
	case err != nil:
		return storage.User{}, err
	case v == nil || v.User.ID != c.UserID:
		return storage.User{}, errSomebodyElse
	}
	return v.User, nil
}

// handleClaim serves POST /claim.
func (s *Server) handleClaim(w http.ResponseWriter, r *http.Request) {
	form, ok := s.readPageForm(w, r)
	if !ok {
		return
	}
	var c claimState
	token, _ := s.sessions.Token(r)
	err := s.sessions.OpenStep(purposeClaim, s.sessions.Browser(w, r), form.Get("step"), &c)
	if err != nil || c.Session != token {
		s.showStale(w, r)
		return
	}
	s.writeLanding(w, r, s.claim(r.Context(), c, form.Get("decision")))
}

// claim carries out what the person said.
func (s *Server) claim(ctx context.Context, c claimState, verdict string) landing {
	if _, err := s.claimant(ctx, c); err != nil {
		return landing{decision: decision{err: err}}
	}
	p, _ := s.ways().provider(c.Provider)
	state := tripState{Connect: c.Connect}
	var arrival delegation.Result
	var err error
	switch verdict {
	case "approve":
		arrival, err = s.cfg.Delegation.Claim(ctx, c.Ticket, c.UserID)
	case "deny":
		err = s.cfg.Delegation.Disclaim(ctx, c.Ticket, c.UserID)
	default:
		return landing{decision: decision{err: oauth.NewError(oauth.InvalidRequest, "The form was not complete.")}}
	}
	l := landing{declined: verdict == "deny"}
	if err != nil {
		l.err, l.away = refusal.Protocol(err), &away{provider: p, state: state}
		return l
	}
	return s.land(ctx, l, state, arrival, storage.Session{})
}
