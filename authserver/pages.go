package authserver

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/clients"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/policy"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/web"
)

// readPageForm reads the form of one of our pages; when it cannot, it has answered.
func (s *Server) readPageForm(w http.ResponseWriter, r *http.Request) (url.Values, bool) {
	form, err := readBody(r)
	switch {
	case err == errTooLarge:
		s.showError(w, r, http.StatusRequestEntityTooLarge, oauth.NewError(oauth.InvalidRequest, "The form is too large."))
	case err != nil:
		s.showError(w, r, http.StatusBadRequest, err)
	}
	return form, err == nil
}

func (s *Server) showLogin(w http.ResponseWriter, r *http.Request, status int, d decision, state loginState, name, problem string) {
	step, err := s.sessions.SealStep(purposeLogin, s.sessions.Browser(w, r), state)
	if err != nil {
		s.showError(w, r, http.StatusBadRequest, err)
		return
	}
	v := web.Login{Action: s.paths.login, Step: step, Username: name, Problem: problem, Farewell: d.farewell, NoPassword: !s.passwords.offered(r.Context())}
	if v.Choices, err = s.choices(s.sessions.Browser(w, r), state); err != nil {
		s.showError(w, r, http.StatusBadRequest, err)
		return
	}
	switch a := d.auth; {
	case state.Query == "":
		v.FormTargets = s.ways().targets()
	case a.client.ID != "":
		v.Client, v.Resource = clientParty(a.client), resourceParty(a.resource.Resource)
		v.FormTargets = formTargets(a.redirectURI)
	case d.stranger.client.ID != "":
		// All that is known is where its document would be. The form may end where the
		// request says, or a person who has consented before would be stuck; whether the
		// browser is sent there is decided when the document is read.
		v.Client = clientParty(storage.Client{ID: d.stranger.client.ID, Source: storage.SourceCIMD})
		v.Resource = resourceParty(a.resource.Resource)
		v.FormTargets = formTargets(d.stranger.sent)
	}
	s.pages.Login(w, status, v)
}

func (s *Server) showConsent(w http.ResponseWriter, r *http.Request, a authorization, v *storage.Visit) {
	browser := s.sessions.Browser(w, r)
	step, err := s.sessions.SealStep(purposeConsent, browser, consentState{
		Query: answered(a), Shown: s.shownOf(a), UserID: v.User.ID, AuthTime: v.Session.AuthTime.Unix(),
	})
	if err != nil {
		s.showError(w, r, http.StatusBadRequest, err)
		return
	}
	signOut, err := s.sessions.SealStep(purposeLogout, browser, loginState{Query: a.query})
	if err != nil {
		s.showError(w, r, http.StatusBadRequest, err)
		return
	}
	s.pages.Consent(w, http.StatusOK, web.Consent{
		Action: s.paths.consent, Step: step, Request: s.requestView(a, v.Consented),
		Username: v.User.Name, SignOutAction: s.paths.logout, SignOutStep: signOut,
		FormTargets: formTargets(a.redirectURI),
	})
}

// requestView is what an application asks for; consented is what it has been allowed before.
func (s *Server) requestView(a authorization, consented oauth.Scopes) web.Request {
	return web.Request{
		Client: clientParty(a.client), SelfRegistered: !s.clients.Vouched(a.client),
		RedirectHost: redirectHost(a.redirectURI), RedirectIsLoopback: oauth.IsLoopbackRedirect(a.redirectURI), RedirectURI: a.redirectURI,
		Resource: resourceParty(a.resource.Resource), Scopes: scopeViews(a.resource.Resource, a.scopes, consented),
		StaySignedIn: a.scopes.Has(oauth.OfflineAccess) || slices.Contains(a.client.GrantTypes, oauth.GrantRefresh),
	}
}

// answered is the request as it is carried past the consent page: what demanded the
// page is fulfilled by it.
func answered(a authorization) string {
	v := a.values()
	v.Del("prompt")
	v.Del(paramProvider)
	return v.Encode()
}

// showStopped tells a person that a client's request was not right, and offers the
// way back to it, instead of sending the browser there unasked.
func (s *Server) showStopped(w http.ResponseWriter, r *http.Request, who identified, e *oauth.Error) {
	target := s.redirectTarget(who, errorResponse(e))
	s.pages.Stopped(w, pageStatus(e), web.Stopped{
		Title: "This request cannot be completed", Message: e.Description, Code: string(e.Code),
		Client: clientParty(who.client), RedirectHost: redirectHost(who.redirectURI), ReturnURL: target,
		ReturnIsCustomScheme: !strings.HasPrefix(target, "http://") && !strings.HasPrefix(target, "https://"),
		RequestID:            requestID(r),
		Advice:               adviseStopped(e),
	})
}

// showIdentifyError answers a request of which we do not know whose it is or where
// the answer would go. Programs that ask for JSON get JSON: some clients probe this
// way whether their registration is still good.
func (s *Server) showIdentifyError(w http.ResponseWriter, r *http.Request, d decision) {
	e := oauth.AsError(d.err)
	s.cfg.Audit.Record(r.Context(), audit.AuthorizeRefused, refusal.Attr(d.err))
	status := pageStatus(e)
	if wantsJSON(r) {
		noteError(r, e)
		setRetryAfter(w, e, status)
		writeJSON(w, status, errorBody{e.Code, oauth.SafeDescription(e.Description)})
		return
	}
	if e.Code == oauth.InvalidClient && d.auth.client.ID != "" {
		noteError(r, e)
		s.pages.Error(w, status, strangerError(d.auth.identified, e, requestID(r)))
		return
	}
	s.showError(w, r, status, e)
}

// strangerError tells a person that we do not know the application that sent them, and
// how to make it register again. The name is that of its registration, if we can still
// read it, or of the kind of application that the request looks like.
func strangerError(who identified, e *oauth.Error, requestID string) web.Error {
	v := web.Error{Message: e.Description, Code: string(e.Code), RequestID: requestID}
	advise(&v, e, http.StatusBadRequest)
	f, known := familyOf(who.client.ID, who.sent)
	if known {
		v.Advice = f.steps
	}
	switch {
	case who.client.Name != "":
		v.Client = who.client.Name
	case known:
		v.Client = f.name
	}
	return v
}

func wantsJSON(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	return strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html")
}

// showError shows the error page. Only a protocol error's own words reach it.
func (s *Server) showError(w http.ResponseWriter, r *http.Request, status int, err error) {
	e := oauth.AsError(err)
	noteError(r, e)
	setRetryAfter(w, e, status)
	v := web.Error{Message: e.Description, Code: string(e.Code), RequestID: requestID(r)}
	advise(&v, e, status)
	if errors.As(err, new(clients.Unfetched)) {
		v.Title = "This application cannot be looked up"
		v.Advice = "Nothing was lost. Please try again in a moment. If it happens again, the makers of the application have to look at the address that is its client id."
	}
	s.pages.Error(w, status, v)
}

// showStale answers a form that was not made for this browser, or too long ago.
func (s *Server) showStale(w http.ResponseWriter, r *http.Request) {
	noteError(r, oauth.NewError(oauth.InvalidRequest, "stale or foreign form"))
	s.pages.Error(w, http.StatusBadRequest, web.Error{
		Title: "This page is out of date", Message: "The form was opened in another browser, or more than an hour ago, or cookies are turned off.",
		Advice: "Go back to the application and start signing in again, or go to the start page.", Home: true, RequestID: requestID(r),
	})
}

// sendToClient sends the browser to the redirect URI with the response. 303 makes it
// a GET that repeats no form (OAuth 2.1 §7.5.4).
//
// A browser that is sent to a private-use scheme gets a page with a button instead;
// a client that is no browser gets the redirect all the same.
func (s *Server) sendToClient(w http.ResponseWriter, r *http.Request, who identified, response url.Values) {
	target := s.redirectTarget(who, response)
	if strings.HasSuffix(redirectHost(who.redirectURI), ":") && r.Header.Get("Sec-Fetch-Dest") == "document" {
		s.pages.Handoff(w, web.Handoff{Client: clientParty(who.client), URL: target, Scheme: redirectHost(who.redirectURI)})
		return
	}
	h := w.Header()
	h.Set("Location", target)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(http.StatusSeeOther)
}

func pageStatus(e *oauth.Error) int {
	if e.Status() == http.StatusUnauthorized {
		return http.StatusBadRequest // 401 would promise a challenge that a page has not
	}
	return e.Status()
}

// clientParty shows a client. The host of its metadata document is what has been
// verified about it; everything else is its own word.
func clientParty(c storage.Client) web.Party {
	p := web.Party{Name: c.Name, URL: c.ID}
	if u, err := url.Parse(c.ID); err == nil && c.Source == storage.SourceCIMD {
		p.Host = u.Host
	}
	return p
}

func resourceParty(r storage.Resource) web.Party {
	p := web.Party{Name: r.Name, URL: r.URI}
	if u, err := url.Parse(r.URI); err == nil {
		p.Host = u.Host
	}
	return p
}

func scopeViews(r storage.Resource, requested, consented oauth.Scopes) []web.Scope {
	var out []web.Scope
	covered := policy.Implied(r, consented)
	for _, t := range r.Scopes {
		if !requested.Has(t.Name) {
			continue
		}
		out = append(out, web.Scope{Name: t.Name, Description: t.Description, New: consented != nil && !covered.Has(t.Name)})
	}
	return out
}

func redirectHost(raw string) string {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return ""
	case u.Scheme == "http" || u.Scheme == "https":
		return u.Host
	}
	return u.Scheme + ":"
}

// formTargets are the sources that the page's Content-Security-Policy must allow its
// form to end at: browsers hold the redirect after a form post against it too. CSP
// has no way to write an IPv6 address, so [::1] is covered by its scheme.
func formTargets(redirectURI string) []string {
	u, err := url.Parse(redirectURI)
	switch {
	case err != nil:
		return nil
	case (u.Scheme == "http" || u.Scheme == "https") && !strings.Contains(u.Host, "["):
		return []string{u.Scheme + "://" + u.Host}
	}
	return []string{u.Scheme + ":"}
}
