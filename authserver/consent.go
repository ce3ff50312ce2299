package authserver

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// consentState is what the consent form carries along, sealed and bound to the
// browser: the request, what was shown of it, and to whom.
type consentState struct {
	Query    string `json:"q"`
	Shown    *shown `json:"s"`
	UserID   string `json:"u"`
	AuthTime int64  `json:"t"` // when that person signed in, seconds since the epoch
}

// approval is a person's yes to one authorization request.
type approval struct {
	authorization
	session    storage.Hash
	userID     string
	authTime   time.Time
	remembered oauth.Scopes // the earlier yes that it rests on; nil: it was given just now
}

// handleConsent serves POST /consent.
func (s *Server) handleConsent(w http.ResponseWriter, r *http.Request) {
	form, ok := s.readPageForm(w, r)
	if !ok {
		return
	}
	browser := s.sessions.Browser(w, r)
	var leaving departState
	if err := s.sessions.OpenStep(purposeLeave, browser, form.Get("step"), &leaving); err == nil {
		s.writeDecision(w, r, s.consentToLeave(r.Context(), leaving, form.Get("decision"), s.networks(r)))
		return
	}
	var state consentState
	if err := s.sessions.OpenStep(purposeConsent, browser, form.Get("step"), &state); err != nil {
		s.showStale(w, r)
		return
	}
	token, _ := s.sessions.Token(r)
	d := s.consent(r.Context(), state, token, form.Get("decision"))
	s.writeDecision(w, r, d)
}

// consent carries out what the person decided. The request is identified and
// validated again, by the client as it is now: what was shown is what is granted, and when it
// is no longer what would be granted, it is shown again (Security H1).
func (s *Server) consent(ctx context.Context, state consentState, token storage.Hash, verdict string) decision {
	query, err := url.ParseQuery(state.Query)
	if err != nil {
		return decision{err: err}
	}
	p := form.New(query)
	who, err := s.identifyShown(ctx, p, state.Shown, verdict)
	if err != nil {
		return decision{auth: authorization{identified: who}, err: err}
	}
	a, err := s.validate(ctx, who, p)
	if err != nil {
		return decision{auth: a, err: err, identified: true}
	}
	if !s.coversClient(state.Shown, who) {
		return s.askAgain(ctx, state.Query, token)
	}
	switch verdict {
	case "approve":
		a, err := s.narrowed(ctx, token, a)
		if err != nil {
			return s.answer(ctx, a, token, nil, err)
		}
		if !s.covers(state.Shown, a) {
			return s.askAgain(ctx, state.Query, token)
		}
		return s.approve(ctx, &approval{authorization: a, session: token, userID: state.UserID, authTime: time.Unix(state.AuthTime, 0)})
	case "deny":
		s.cfg.Audit.Record(ctx, audit.ConsentDenied, slog.String("user", state.UserID), slog.String("client_id", who.client.ID), slog.String("resource", a.resource.URI))
		return decision{auth: a, identified: true, direct: true,
			err: oauth.NewError(oauth.AccessDenied, "The person denied the request.")}
	}
	return decision{err: oauth.NewError(oauth.InvalidRequest, "The form was not complete.")}
}

// identifyShown identifies the client of an answer. For an approval it may be the client of some
// seconds ago, when that is what the person was shown: the store confirms it in the statement
// that approves.
func (s *Server) identifyShown(ctx context.Context, p form.Params, x *shown, verdict string) (identified, error) {
	if verdict == "approve" {
		if who, err := s.identify(ctx, p, s.clients.Find); err == nil && s.coversClient(x, who) {
			return who, nil
		}
	}
	return s.identify(ctx, p, s.clients.Current)
}

// askAgain shows the page on which people decide about a request, as it is now, whatever
// they have approved before.
func (s *Server) askAgain(ctx context.Context, query string, token storage.Hash) decision {
	v := requested(query).values()
	v.Set("prompt", "consent")
	return s.judge(ctx, form.New(v), token, s.clients.Current)
}

// approve issues the code. The store checks once more, in the same statement, that
// the session is live and belongs to the person who was asked, and that the client is the
// one that was shown.
func (s *Server) approve(ctx context.Context, ap *approval) decision {
	response, err := s.issueCode(ctx, ap)
	return s.answer(ctx, ap.authorization, ap.session, response, err)
}

// answer is what an approval has come to. When its session has ended meanwhile, the person
// signs in again; when the client has changed meanwhile, they are asked again, and when it was
// deleted, they are told.
func (s *Server) answer(ctx context.Context, a authorization, token storage.Hash, response url.Values, err error) decision {
	d := decision{auth: a, identified: true, direct: true, step: stepIssue, response: response, err: err}
	switch {
	case errors.Is(err, storage.ErrNotFound):
		d.step, d.err, d.farewell = signInStep(a), nil, s.farewell(ctx, token)
	case errors.Is(err, storage.ErrChanged), errors.Is(err, storage.ErrRevoked):
		return s.askAgain(ctx, a.query, token)
	}
	return d
}
