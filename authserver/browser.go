package authserver

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// handleAuthorize serves GET /authorize. It changes nothing, however often it is
// fetched, but for the one case in which the answer is a code.
func (s *Server) handleAuthorize(w http.ResponseWriter, r *http.Request) {
	if len(r.URL.RawQuery) > maxQueryBytes {
		s.showError(w, r, http.StatusRequestURITooLong, oauth.NewError(oauth.InvalidRequest, "The request is too long."))
		return
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		s.showError(w, r, http.StatusBadRequest, oauth.NewError(oauth.InvalidRequest, "The request is not well-formed."))
		return
	}
	token, _ := s.sessions.Token(r)
	decision := s.decide(r.Context(), form.New(query), token)
	s.writeDecision(w, r, decision)
}

// decision is what /authorize answers.
type decision struct {
	step  step
	auth  authorization
	visit *storage.Visit
	err   error // for stepRefuse, or why there is no request at all
	// identified: the answer may go to the redirect URI. direct: without asking first.
	identified, direct bool
	response           url.Values // for stepIssue
	// stranger is who asks, by their own word, when the login page comes first.
	stranger identified
	farewell string // why the person is no longer signed in, "" for no special reason
	away     *away  // the trip to a provider that begins, or that came to nothing
}

// decide runs a request through its phases, again when the client or the consent that it
// was judged by turns out to be of a moment ago.
func (s *Server) decide(ctx context.Context, p form.Params, token storage.Hash) decision {
	d := s.judge(ctx, p, token, s.clients.Find)
	if errors.Is(d.err, storage.ErrChanged) {
		d = s.judge(ctx, p, token, s.clients.Current)
	}
	if errors.Is(d.err, storage.ErrChanged) {
		d.err, d.direct = refusal.Unavailable(d.err), false
	}
	return d
}

// judge runs a request through its phases: identify, validate, dispatch.
func (s *Server) judge(ctx context.Context, p form.Params, token storage.Hash, find finder) decision {
	who, err := s.identify(ctx, p, find)
	if errors.Is(err, refusal.ErrUnknownClient) && s.clients.MayFetch(who.client.ID) {
		v, visitErr := s.visitor(ctx, token, storage.VisitKey{})
		switch {
		case visitErr != nil:
			err = visitErr
		case v == nil: // nothing is known of the client before somebody signs in
			d := s.greet(ctx, who, p)
			d.farewell = s.farewell(ctx, token)
			return d
		default:
			who, err = s.identify(ctx, p, s.clients.Fetch)
		}
	}
	if err != nil {
		return decision{auth: authorization{identified: who}, err: err}
	}
	a, err := s.validate(ctx, who, p)
	v, visitErr := s.visitor(ctx, token, consentKey(who, a.resource.URI))
	if err == nil && v != nil {
		if a, err = s.permitted(ctx, v.Session.UpstreamID, a); errors.Is(err, storage.ErrNotFound) {
			v, err = nil, nil
		}
	}
	d := decision{auth: a, visit: v, identified: true, direct: mayRedirectErrors(who.client, v)}
	switch {
	case visitErr != nil:
		d.err, d.direct = visitErr, false
	case err != nil:
		d.err = err
	default:
		d.step, d.err = next(a, v, s.cfg.Now())
	}
	if d.step == stepIssue && d.err == nil {
		d.response, d.err = s.issueCode(ctx, &approval{a, v.Session.Hash, v.User.ID, v.Session.AuthTime, v.Consented})
		if errors.Is(d.err, storage.ErrNotFound) { // the session ended in between
			d.step, d.err, d.visit = signInStep(a), nil, nil
		}
	}
	if v == nil {
		d.farewell = s.farewell(ctx, token)
	}
	return d
}

// greet is the login page for a client of which only the id is known, a URL.
func (s *Server) greet(ctx context.Context, who identified, p form.Params) decision {
	a := authorization{query: p.Values.Encode(), prompt: strings.Fields(p.Get("prompt")), provider: s.pickProvider(p), maxAge: -1}
	d := decision{step: signInStep(a), stranger: who, auth: a}
	if catalog, err := s.catalog.Load(ctx); err == nil {
		d.auth.resource, _ = catalog.Resolve(p.Resources()) // for the page; it is validated with the client
	}
	return d
}

// consentKey names the consent that an answer without a question could rest on: for the
// client as it is, and for the place that the answer goes to. Consents from before places
// were kept count for clients of the operator alone.
func consentKey(who identified, resource string) storage.VisitKey {
	return storage.VisitKey{
		ClientID: who.client.ID, Resource: resource,
		Place: oauth.RedirectPlace(who.redirectURI), Material: who.client.Material(), Unplaced: who.client.Operated(),
	}
}

// visit returns who the browser belongs to, nil for nobody, and what they have consented to.
func (s *Server) visit(ctx context.Context, token storage.Hash, consent storage.VisitKey) (*storage.Visit, error) {
	if token == (storage.Hash{}) {
		return nil, nil
	}
	consent.Session, consent.Now = token, s.cfg.Now()
	v, err := s.cfg.Store.Visit(ctx, consent)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, refusal.Unavailable(err)
	}
	if v.Session.UpstreamID != "" && s.cfg.Bindings == nil {
		return nil, nil // its provider was taken out of the configuration
	}
	audit.Note(ctx, audit.Person(v.User.ID, v.User.Name))
	return &v, nil
}

func (s *Server) writeDecision(w http.ResponseWriter, r *http.Request, d decision) {
	switch {
	case d.err != nil && d.away != nil:
		s.writeFailure(w, r, d)
	case d.err != nil && !d.identified:
		s.showIdentifyError(w, r, d)
	case d.err != nil:
		s.writeRefusal(w, r, d.auth.identified, d.err, d.direct)
	case d.step == stepLogin:
		s.showLogin(w, r, http.StatusOK, d, loginState{Query: d.auth.query}, "", "")
	case d.step == stepDepart:
		s.showDeparture(w, r, d)
	case d.step == stepLeave:
		s.sendAway(w, r, d.away)
	case d.step == stepConsent:
		s.showConsent(w, r, d.auth, d.visit)
	default:
		s.sendToClient(w, r, d.auth.identified, d.response)
	}
}

// writeRefusal answers a request that cannot be fulfilled: at the redirect URI, or
// on a page that offers the way there.
func (s *Server) writeRefusal(w http.ResponseWriter, r *http.Request, who identified, err error, direct bool) {
	e := oauth.AsError(err)
	noteError(r, e)
	s.cfg.Audit.Record(r.Context(), audit.AuthorizeRefused, refusal.Attr(err))
	if direct {
		s.sendToClient(w, r, who, errorResponse(e))
		return
	}
	if e.Code == oauth.TemporarilyUnavailable { // loading the page again is all it takes
		s.showError(w, r, pageStatus(e), e)
		return
	}
	s.showStopped(w, r, who, e)
}
