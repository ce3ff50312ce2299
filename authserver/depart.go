package authserver

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/delegation"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/session"
	"github.com/mcp-authd/mcp-authd/storage"
)

// departState is what the forms that send a browser to a provider carry along, sealed and
// bound to the browser.
type departState struct {
	Provider string             `json:"p"`
	Errand   delegation.Purpose `json:"e"`
	UserID   string             `json:"u,omitempty"` // who was signed in, "" for nobody
	Trip     tripState          `json:"t"`
}

// tripState is what comes back with the browser: where it was going.
type tripState struct {
	Query string `json:"q,omitempty"` // an authorization request
	// Approved is what the person approved of it, nil when that comes after signing in.
	Approved *shown `json:"a,omitempty"`
	Connect  string `json:"c,omitempty"` // or a request at /connect; neither: the start page
}

// away is a trip to a provider: where the browser goes, or what was left behind.
type away struct {
	provider  delegation.Provider
	userID    string
	state     tripState
	departure delegation.AuthorizationRequest
	declined  bool // the person said no at the provider
	// came and expected are accounts there, when the wrong one came back.
	came, expected string
}

// consentToLeave carries out what the person decided on the departure page. The request is
// identified and validated again, as after the consent page. Nothing about the trip exists
// before this (AS-220, AS-222, SP-01).
func (s *Server) consentToLeave(ctx context.Context, state departState, verdict string, networks []string) decision {
	d := s.leaving(ctx, state)
	switch {
	case d.err != nil:
		return d
	case d.identified && !s.coversClient(state.Trip.Approved, d.auth.identified):
		return d // another client than the one that was shown: show it
	case verdict == "deny":
		s.cfg.Audit.Record(ctx, audit.ConsentDenied, slog.String("client_id", d.clientID()), slog.String("resource", d.auth.resource.URI))
		d.err = oauth.NewError(oauth.AccessDenied, "The person denied the request.")
		if !d.identified {
			d.err = oauth.NewError(oauth.AccessDenied, "You did not continue, so nothing was approved.")
		}
		return d
	case verdict != "approve":
		return decision{err: oauth.NewError(oauth.InvalidRequest, "The form was not complete.")}
	case d.identified && !s.covers(state.Trip.Approved, d.auth):
		return d // more than what was shown: show it
	}
	p := requested(state.Trip.Query).values()
	return s.depart(ctx, d, state, networks, delegation.Request{
		LoginHint: p.Get("login_hint"),
		Fresh:     p.Has("max_age") || slices.Contains(d.auth.prompt, "login"),
		Choose:    slices.Contains(d.auth.prompt, "select_account"),
	})
}

// leaving is the request of a departure page.
func (s *Server) leaving(ctx context.Context, state departState) decision {
	query, err := url.ParseQuery(state.Trip.Query)
	if err != nil {
		return decision{err: err}
	}
	p := form.New(query)
	who, err := s.identify(ctx, p, s.clients.Current)
	if errors.Is(err, refusal.ErrUnknownClient) && s.clients.MayFetch(who.client.ID) {
		state.Trip.Approved = nil
		d := s.greet(ctx, who, p)
		d.step, d.auth.provider = stepDepart, state.Provider
		return d
	}
	if err != nil {
		return decision{auth: authorization{identified: who}, err: err}
	}
	a, err := s.validate(ctx, who, p)
	a.provider = state.Provider
	return decision{auth: a, err: err, identified: true, direct: err == nil, step: stepDepart}
}

// clientID is who asks, known or by their own word.
func (d decision) clientID() string {
	if d.stranger.client.ID != "" {
		return d.stranger.client.ID
	}
	return d.auth.client.ID
}

// handleDepart serves POST /depart: the person wants to sign in at a provider, or to tie an
// account there to theirs, without an application that asks for it.
func (s *Server) handleDepart(w http.ResponseWriter, r *http.Request) {
	form, ok := s.readPageForm(w, r)
	if !ok {
		return
	}
	var state departState
	if err := s.sessions.OpenStep(purposeDepart, s.sessions.Browser(w, r), form.Get("step"), &state); err != nil {
		s.showStale(w, r)
		return
	}
	token, _ := s.sessions.Token(r)
	s.writeDecision(w, r, s.setOut(r.Context(), state, token, s.networks(r)))
}

func (s *Server) setOut(ctx context.Context, state departState, token storage.Hash, networks []string) decision {
	if state.UserID != "" {
		if err := s.isStill(ctx, token, state.UserID); err != nil {
			return decision{err: err}
		}
	}
	return s.depart(ctx, decision{}, state, networks, delegation.Request{})
}

var errSomebodyElse = oauth.NewError(oauth.AccessDenied, "Somebody else is signed in in this browser, or nobody is any more. Sign in and begin again.")

// isStill returns nil when a browser session belongs to the user.
func (s *Server) isStill(ctx context.Context, token storage.Hash, userID string) error {
	v, err := s.visitor(ctx, token, storage.VisitKey{})
	switch {
	case err != nil:
		return err
	case v == nil || v.User.ID != userID:
		return errSomebodyElse
	}
	return nil
}

// depart prepares the trip. t says what is not in state.
func (s *Server) depart(ctx context.Context, d decision, state departState, networks []string, t delegation.Request) decision {
	if err := s.departures.take(networks, state.UserID != ""); err != nil {
		return decision{err: err} // for the person, whose form stays good
	}
	d.away = &away{state: state.Trip, userID: state.UserID}
	var known bool
	if d.away.provider, known = s.ways().provider(state.Provider); !known {
		d.away, d.err = nil, oauth.NewError(oauth.InvalidRequest, "This way to sign in is not offered any more.")
		return d
	}
	if !d.identified {
		d.away.state.Approved = nil
	}
	audit.Note(ctx, slog.String("connector", state.Provider), slog.String("errand", string(state.Errand)))
	t.Provider, t.Purpose, t.UserID, t.ClientID = state.Provider, state.Errand, state.UserID, d.clientID()
	var err error
	if t.Payload, err = json.Marshal(d.away.state); err == nil {
		d.away.departure, err = s.cfg.Delegation.Depart(ctx, t)
	}
	d.step, d.err = stepLeave, refusal.Protocol(err)
	return d
}

// sendAway sets the cookie of the trip and sends the browser to the provider (AS-221). A
// browser gets there by a page of ours, see web.Pages.Leaving; whoever is none is
// redirected.
func (s *Server) sendAway(w http.ResponseWriter, r *http.Request, t *away) {
	s.sessions.SetTrip(w, r, session.Departure{
		State: t.departure.State, Binding: t.departure.Binding, UserID: t.userID, ExpiresAt: t.departure.ExpiresAt,
	})
	if isDocument(r) {
		s.pages.Leaving(w, leavingView(t))
		return
	}
	h := w.Header()
	h.Set("Location", t.departure.URL)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(http.StatusSeeOther)
}
