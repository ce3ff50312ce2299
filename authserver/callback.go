package authserver

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/delegation"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/session"
	"github.com/mcp-authd/mcp-authd/storage"
)

// responseParams are the parameters of an authorization response that mean anything to us
// (RFC 6749 §4.1.2, RFC 9207 §2).
var responseParams = []string{"state", "code", "iss", "error", "error_description"}

// handleCallback serves /callback/{provider}, where the browser comes back to.
func (s *Server) handleCallback(w http.ResponseWriter, r *http.Request) {
	provider, ok := s.ways().provider(r.PathValue("provider"))
	audit.Note(r.Context(), slog.String("connector", form.Cut(r.PathValue("provider"), 100)))
	switch {
	case !ok:
		s.showError(w, r, http.StatusNotFound, oauth.NewError(oauth.InvalidRequest, "There is no such way to sign in here."))
	case r.Method == http.MethodPost:
		s.turnIntoGet(w, r)
	case len(r.URL.RawQuery) > maxQueryBytes:
		s.showError(w, r, http.StatusRequestURITooLong, oauth.NewError(oauth.InvalidRequest, "The request is too long."))
	default:
		s.comeBack(w, r, provider)
	}
}

// turnIntoGet answers an authorization response that comes by a form of the provider's
// (response_mode=form_post). Our cookies are not sent with a post from another site, but
// are with the GET that follows.
func (s *Server) turnIntoGet(w http.ResponseWriter, r *http.Request) {
	form, ok := s.readPageForm(w, r)
	if !ok {
		return
	}
	query := responseOnly(form).Encode()
	if len(query) > maxQueryBytes {
		s.showError(w, r, http.StatusRequestEntityTooLarge, oauth.NewError(oauth.InvalidRequest, "The request is too long."))
		return
	}
	h := w.Header()
	h.Set("Location", s.paths.callback+r.PathValue("provider")+"?"+query)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(http.StatusSeeOther)
}

// responseOnly drops what is not an authorization response, and a state that is there twice.
// Whatever else is there twice is for the delegation to refuse (RFC 6749 §3.1): an error
// must not be lost beside a code.
func responseOnly(values url.Values) url.Values {
	out := url.Values{}
	for _, k := range responseParams {
		if v := values[k]; len(v) == 1 || len(v) > 1 && k != "state" {
			out[k] = v
		}
	}
	return out
}

func (s *Server) comeBack(w http.ResponseWriter, r *http.Request, provider delegation.Provider) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		s.showError(w, r, http.StatusBadRequest, oauth.NewError(oauth.InvalidRequest, "The request is not well-formed."))
		return
	}
	params := responseOnly(values)
	carried, ok := s.sessions.Trip(r, params.Get("state"))
	if !ok {
		// Who has only the state, from a log or a link, touches nothing (AS-220).
		s.showLost(w, r)
		return
	}
	token, _ := s.sessions.Token(r)
	fresh := s.sessions.Mint("") // always a new one: see login
	l := s.arrive(r.Context(), provider, carried, token, delegation.AuthorizationResponse{
		Provider: provider.ID, Params: params, Binding: carried.Binding, Session: fresh.Session,
	})
	if l.over {
		s.sessions.EndTrip(w, params.Get("state"))
	}
	if l.signedIn {
		s.sessions.SetCookie(w, fresh)
	}
	s.writeLanding(w, r, l)
}

// landing is what a callback answers.
type landing struct {
	decision
	over     bool            // the trip cannot be completed again
	signedIn bool            // the session has begun
	to       string          // our own page to go on to, "" when decision or done says it
	done     *connectRequest // what was connected, or was not
	declined bool
	claim    *claimState // what the person is asked first
}

func (s *Server) writeLanding(w http.ResponseWriter, r *http.Request, l landing) {
	switch {
	case l.err == nil && l.claim != nil:
		s.showClaim(w, r, *l.claim)
	case l.err == nil && l.done != nil:
		s.showConnected(w, r, *l.done, l.declined)
	case l.err == nil && l.to != "":
		w.Header().Set("Referrer-Policy", "no-referrer")
		http.Redirect(w, r, l.to, http.StatusSeeOther)
	default:
		s.writeDecision(w, r, l.decision)
	}
}

// arrive completes a trip. Who departed as a user must still be that user: somebody else
// who uses the browser meanwhile would get their account there tied to the wrong one here
// (RS-203).
func (s *Server) arrive(ctx context.Context, p delegation.Provider, c session.Carried, token storage.Hash, r delegation.AuthorizationResponse) landing {
	if c.UserID != "" {
		if err := s.isStill(ctx, token, c.UserID); err != nil {
			return landing{decision: decision{err: err}}
		}
	}
	arrival, err := s.cfg.Delegation.Return(ctx, r)
	err = refusal.Protocol(err)
	l := landing{over: err == nil || arrival.Request.Provider != "" || oauth.AsError(err).Code != oauth.TemporarilyUnavailable}
	if err != nil && arrival.Request.Provider == "" {
		l.err = err
		return l
	}
	var state tripState
	if bad := json.Unmarshal(arrival.Request.Payload, &state); bad != nil {
		l.err = errors.Join(err, bad)
		return l
	}
	if err != nil {
		l.decision = s.leftBehind(ctx, state)
		l.err, l.away = err, &away{
			provider: p, state: state, declined: r.Params.Has("error"), came: arrival.Came, expected: arrival.Expected,
		}
		return l
	}
	if arrival.Claim != nil {
		return s.question(ctx, arrival, state, token)
	}
	audit.Note(ctx, slog.String("user", arrival.User.ID))
	l.signedIn = arrival.Request.Purpose == delegation.PurposeSignIn
	return s.land(ctx, l, state, arrival, r.Session)
}

// land goes on to where the person was going.
func (s *Server) land(ctx context.Context, l landing, state tripState, arrival delegation.Result, fresh storage.Session) landing {
	switch {
	case arrival.Request.Purpose == delegation.PurposeExtend || l.declined && state.Connect != "":
		if req, err := s.openConnect(state.Connect); req.Provider != "" {
			l.done = &req // it may have expired on the way
		} else {
			l.err = err
		}
	case state.Query == "" || state.Approved == nil: // consent, if it is needed, comes now
		l.to = s.destination(loginState{Query: state.Query, Connect: state.Connect})
	default:
		fresh.AuthTime = arrival.AuthTime
		l.decision = s.resume(ctx, state, arrival, fresh)
	}
	return l
}

// leftBehind is the client of a trip that came to nothing, if the person approved that its
// answer goes there.
func (s *Server) leftBehind(ctx context.Context, state tripState) decision {
	if state.Approved == nil {
		return decision{}
	}
	who, err := s.identify(ctx, form.New(requested(state.Query).values()), s.clients.Current)
	if err != nil || !s.coversClient(state.Approved, who) {
		return decision{}
	}
	return decision{auth: authorization{identified: who, query: state.Query}, identified: true, direct: true}
}

// resume answers the request that the person approved before signing in: with a code at
// once, also for clients that ask each time. The request is identified and validated again;
// if it has become another one, the person is asked again.
func (s *Server) resume(ctx context.Context, state tripState, arrival delegation.Result, fresh storage.Session) decision {
	p := form.New(requested(state.Query).values())
	who, err := s.identify(ctx, p, s.clients.Current)
	if errors.Is(err, refusal.ErrUnknownClient) && s.clients.MayFetch(who.client.ID) {
		who, err = s.identify(ctx, p, s.clients.Fetch)
	}
	if err != nil {
		return decision{auth: authorization{identified: who}, err: err}
	}
	a, err := s.validate(ctx, who, p)
	if err != nil {
		return decision{auth: a, err: err, identified: true}
	}
	if !s.covers(state.Approved, a) {
		return s.askAgain(ctx, resumed(a), fresh.Hash)
	}
	if a, err = s.permitted(ctx, arrival.Upstream, a); err != nil {
		return s.answer(ctx, a, fresh.Hash, nil, err)
	}
	return s.approve(ctx, &approval{authorization: a, session: fresh.Hash, userID: arrival.User.ID, authTime: fresh.AuthTime})
}
