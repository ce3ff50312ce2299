package authserver

import (
	"errors"
	"net/http"
	"strings"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/web"
)

// wantsPage reports whether a person will look at the answer.
func wantsPage(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

// showMisfit answers a request that no endpoint takes: with a page for people, and JSON for
// programs.
func (s *Server) showMisfit(w http.ResponseWriter, r *http.Request, status int, v web.Error) {
	noteError(r, oauth.NewError(oauth.InvalidRequest, v.Message))
	if !wantsPage(r) {
		writeJSON(w, status, errorBody{oauth.InvalidRequest, oauth.SafeDescription(v.Message)})
		return
	}
	v.RequestID = requestID(r)
	s.pages.Error(w, status, v)
}

// notFound answers what is not here.
func (s *Server) notFound(w http.ResponseWriter, r *http.Request) {
	s.showMisfit(w, r, http.StatusNotFound, web.Error{
		Title: "There is no such page", Message: "This server has nothing at this address.",
		Advice: "Check the address, or go to the start page.", Home: true,
	})
}

// wrongMethod answers a method that an endpoint has not. Where a form ends, that is what
// opening the address again does: the browser keeps it after a wrong password.
func (s *Server) wrongMethod(w http.ResponseWriter, r *http.Request) {
	s.showMisfit(w, r, http.StatusMethodNotAllowed, web.Error{
		Title: "This page cannot be opened again", Message: "This address takes the answer of a form, and is no page by itself.",
		Advice: "Go back to the application and start signing in again, or go to the start page.", Home: true,
	})
}

// crossOrigin answers a form that another site has sent.
func (s *Server) crossOrigin(w http.ResponseWriter, r *http.Request) {
	s.showMisfit(w, r, http.StatusForbidden, web.Error{
		Title: "This form was not sent from this server", Message: "The request came from another site, or something on the way has changed its headers. Nothing was done.",
		Advice: "Open the page again and send the form from there. If that does not help, tell the operator of this server the number below: " +
			"a proxy in front of it must leave the headers Host and Origin as they are.", Home: true,
	})
}

// handleLoginPage serves GET /login: the address bar shows it after a wrong password, and
// the start page leads here.
func (s *Server) handleLoginPage(w http.ResponseWriter, r *http.Request) {
	token, _ := s.sessions.Token(r)
	h, err := s.home(r.Context(), token)
	switch {
	case err != nil:
		s.showError(w, r, http.StatusServiceUnavailable, err)
	case h.visit != nil:
		http.Redirect(w, r, s.paths.home, http.StatusSeeOther)
	default:
		s.showLogin(w, r, http.StatusOK, decision{farewell: h.farewell}, loginState{}, "", "")
	}
}

func handleRobots(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("User-agent: *\nDisallow: /\n"))
}

// handleIcon serves /favicon.ico, which browsers ask for beside the icon that pages name.
func (s *Server) handleIcon(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, s.pages.Icon(), http.StatusMovedPermanently)
}

// advise fills in what a page says beyond the protocol's own words.
func advise(v *web.Error, e *oauth.Error, status int) {
	switch {
	case e.Code == oauth.InvalidClient:
		v.Title = "This application is not known here"
		if errors.Is(e, refusal.ErrUnknownClient) {
			v.Message = "This server has no registration of the application that sent you here: it never had one, or has removed it."
		}
		v.Advice = "Remove this server from the application, or clear its saved sign-in, and connect again: it will then register again."
	case e.Code == oauth.TemporarilyUnavailable, e.Code == oauth.SlowDown:
		v.Title = "The server is busy"
		v.Advice = "Nothing was lost. Please try again in a moment. If it happens again, tell the operator of this server the number below."
	case e.Unwrap() == refusal.ErrNotRegistered:
		v.Title = "The answer would go to an unknown address"
		v.Advice = "If you did not start this yourself, close this page. Otherwise remove this server from the application and connect again, " +
			"so that it registers the address that it uses now."
	case status >= 500:
		v.Title = "This server has failed"
		v.Advice = "You did nothing wrong. Please try again. If it happens again, tell the operator of this server the number below."
	case status == http.StatusNotFound:
		v.Title, v.Home = "There is no such page", true
	case e.Code == oauth.AccessDenied: // what the message says is for the person to change
		v.Title, v.Home = "This was not done", true
	default:
		v.Title = "This sign-in cannot go on"
		v.Advice = "Go back to the application and start signing in again. If it happens again, the application is at fault: tell its makers what this page says."
	}
}

// adviseStopped says what to do about a request that cannot be carried out: a person may
// correct an address, but not what their application sends.
func adviseStopped(e *oauth.Error) string {
	switch e.Code {
	case oauth.InvalidTarget:
		return "Check the address of the MCP server in the application. If it is right, tell the operator of this server the number below."
	case oauth.AccessDenied, oauth.TemporarilyUnavailable, oauth.ServerError, oauth.LoginRequired, oauth.ConsentRequired:
		return "If you started this sign-in yourself, return to the application and try again."
	}
	return "Trying again does not help before the application has changed: tell its makers what this page says."
}
