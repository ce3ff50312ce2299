package authserver

import (
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/delegation"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/web"
)

// isDocument reports whether a browser will show the answer.
func isDocument(r *http.Request) bool { return r.Header.Get("Sec-Fetch-Dest") == "document" }

func leavingView(t *away) web.Leaving {
	return web.Leaving{Provider: providerView(t.provider), URL: t.departure.URL}
}

// showDeparture shows the consent page of somebody who is not signed in and will do so at a
// provider. Nothing has left by then, and nothing is stored (AS-221, AS-222).
func (s *Server) showDeparture(w http.ResponseWriter, r *http.Request, d decision) {
	a, ways := d.auth, s.ways()
	p, _ := ways.provider(a.provider)
	state := departState{Provider: a.provider, Errand: delegation.PurposeSignIn, Trip: tripState{Query: a.query}}
	v := web.Departure{Action: s.paths.consent, Provider: providerView(p), Farewell: d.farewell}
	if d.stranger.client.ID != "" {
		v.Unread = true
		v.Client = clientParty(storage.Client{ID: d.stranger.client.ID, Source: storage.SourceCIMD})
		v.Resource = resourceParty(a.resource.Resource)
	} else {
		state.Trip.Approved = s.shownOf(a)
		v.Request, v.FormTargets = s.requestView(a, nil), formTargets(a.redirectURI)
	}
	v.FormTargets = append(v.FormTargets, providerTargets(p)...)
	if ways.local = s.passwords.offered(r.Context()); ways.several() {
		v.OtherURL = s.authorizeAt(a.query, anyProvider)
	}
	var err error
	if v.Step, err = s.sessions.SealStep(purposeLeave, s.sessions.Browser(w, r), state); err != nil {
		s.showError(w, r, http.StatusBadRequest, err)
		return
	}
	s.pages.Departure(w, http.StatusOK, v)
}

// writeFailure tells of a trip that came to nothing. The client gets an OAuth error at the
// redirect URI that the person approved: at once when the person has said no, or nobody
// looks, and after a page that says what happened otherwise.
func (s *Server) writeFailure(w http.ResponseWriter, r *http.Request, d decision) {
	e := oauth.AsError(d.err)
	noteError(r, e)
	told := e
	if d.identified {
		told = forClient(e, requested(d.away.state.Query).values())
		s.cfg.Audit.Record(r.Context(), audit.AuthorizeRefused, slog.String("connector", d.away.provider.ID), refusal.Attr(d.err))
		if d.away.declined && e.Code == oauth.AccessDenied || !isDocument(r) {
			s.sendToClient(w, r, d.auth.identified, errorResponse(told))
			return
		}
	}
	s.showFailed(w, r, d, told)
}

// forClient is an error of a provider as a client understands it (RFC 6749 §4.1.2.1): the
// client's own request was in order. Who cannot prove a new sign-in fails max_age, or else
// prompt=login (OpenID Connect Core §3.1.2.1).
func forClient(e *oauth.Error, request url.Values) *oauth.Error {
	told := *e
	switch {
	case e.Code == oauth.UnmetAuthentication && !request.Has("max_age"):
		told.Code = oauth.LoginRequired
	case !slices.Contains([]oauth.Code{oauth.AccessDenied, oauth.ServerError, oauth.TemporarilyUnavailable, oauth.UnmetAuthentication}, e.Code):
		told.Code = oauth.ServerError
	}
	return &told
}

func (s *Server) showFailed(w http.ResponseWriter, r *http.Request, d decision, e *oauth.Error) {
	v := web.Failed{
		Message: e.Description, Code: string(e.Code), RequestID: requestID(r), Provider: providerView(d.away.provider), RetryURL: s.paths.home,
		Fault: faultOf(e), Came: d.away.came, Expected: d.away.expected,
	}
	switch state := d.away.state; {
	case state.Query != "" && slices.Contains([]oauth.Code{oauth.AccessDenied, oauth.UnmetAuthentication, oauth.LoginRequired}, e.Code):
		// the same account, or the same provider, would be refused again
		v.RetryURL = s.paths.authorize + "?" + s.asSomebodyElse(state.Query)
	case state.Query != "":
		v.RetryURL = s.authorizeAt(state.Query, d.away.provider.ID)
	case state.Connect != "":
		v.RetryURL = s.paths.connect + state.Connect
	}
	if d.identified {
		v.Client, v.ReturnURL = clientParty(d.auth.client), s.redirectTarget(d.auth.identified, errorResponse(e))
		v.ReturnIsCustomScheme = !strings.HasPrefix(v.ReturnURL, "http://") && !strings.HasPrefix(v.ReturnURL, "https://")
	}
	status := pageStatus(e)
	setRetryAfter(w, e, status)
	s.pages.Failed(w, status, v)
}

// faultOf tells faults of the provider, and of its registration here, from those of the
// person, who need not try what cannot help.
func faultOf(e *oauth.Error) web.Fault {
	switch e.Code {
	case oauth.TemporarilyUnavailable:
		return web.FaultProvider
	case oauth.ServerError:
		return web.FaultSetup
	}
	return web.FaultPerson
}

// showLost answers a browser that comes from a provider and did not go there from here.
func (s *Server) showLost(w http.ResponseWriter, r *http.Request) {
	noteError(r, oauth.NewError(oauth.InvalidRequest, "unknown, used or foreign state"))
	s.pages.Error(w, http.StatusBadRequest, web.Error{
		Title: "This sign-in cannot be continued", Message: "It was begun in another browser, or is finished already, or has taken more than ten minutes.",
		Advice: "Nothing was changed. Go back to the application and start signing in again, or go to the start page.", Home: true, RequestID: requestID(r),
	})
}

func (s *Server) showConnect(w http.ResponseWriter, r *http.Request, sealed string, req connectRequest, v *storage.Visit) {
	p, ok := s.ways().provider(req.Provider)
	if !ok {
		s.showLink(w, r, http.StatusBadRequest, errConnectLink)
		return
	}
	browser := s.sessions.Browser(w, r)
	step, err := s.sessions.SealStep(purposeConnect, browser, connectState{sealed, v.User.ID})
	var signOut string
	if err == nil {
		signOut, err = s.sessions.SealStep(purposeLogout, browser, loginState{Connect: sealed})
	}
	if err != nil {
		s.showError(w, r, http.StatusBadRequest, err)
		return
	}
	s.pages.Connect(w, web.Connect{
		Action: s.paths.connect + sealed, Step: step, Resource: resourceParty(s.resourceNamed(r.Context(), req.Resource)), Provider: providerView(p),
		Scopes: req.Scopes, Username: v.User.Name, SignOutAction: s.paths.logout, SignOutStep: signOut, FormTargets: providerTargets(p),
	})
}

func (s *Server) showConnected(w http.ResponseWriter, r *http.Request, req connectRequest, declined bool) {
	p, _ := s.ways().provider(req.Provider)
	s.pages.Connected(w, web.Connected{Provider: providerView(p), Resource: resourceParty(s.resourceNamed(r.Context(), req.Resource)), Declined: declined})
}

// showLink answers a link that is no good.
func (s *Server) showLink(w http.ResponseWriter, r *http.Request, status int, err error) {
	e := oauth.AsError(err)
	noteError(r, e)
	s.pages.Error(w, status, web.Error{Title: "This link does not work any more", Message: e.Description, RequestID: requestID(r)})
}

// showNotYours answers somebody who opened another person's link (RS-200).
func (s *Server) showNotYours(w http.ResponseWriter, r *http.Request) {
	noteError(r, oauth.NewError(oauth.AccessDenied, "the link is another person's"))
	s.pages.Error(w, http.StatusForbidden, web.Error{
		Title: "This link is for another account", Message: "It was made for somebody else, or for another account of yours.",
		Advice: "If somebody sent it to you, do not use it. If it is yours, sign out on the start page and open it again with the account that your application uses.",
		Home:   true, RequestID: requestID(r),
	})
}
