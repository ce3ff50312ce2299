package authserver

import (
	"errors"
	"net/http"
	"strings"

	"github.com/mcp-authd/mcp-authd/authserver/internal/clients"
	"github.com/mcp-authd/mcp-authd/authserver/internal/flow"
	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// errorPages writes pages with only a message.
type errorPages struct {
	web   *spokenPages
	hosts *foreignHosts
}

// show shows the error page. It shows only the text of a protocol error.
func (p *errorPages) show(w http.ResponseWriter, r *http.Request, status int, err error) {
	e := oauth.AsError(err)
	request.Of(r.Context()).Refuse(e)
	setRetryAfter(w, e, status)
	v := pages.Error{
		Message:   pages.Told(sentence.Of(e)),
		Code:      string(e.Code),
		RequestID: request.Of(r.Context()).Reference(),
	}
	advise(&v, e, status)
	if errors.As(err, new(clients.Unfetched)) {
		v.Title = pages.Say("error.unread_title")
		v.Advice = pages.Say("error.unread_advice")
	}
	p.web.For(r).Error(w, status, v)
}

// fail answers a request whose client or redirect URI is unknown. Programs that accept JSON get
// JSON: some clients check in this way whether their registration is still valid.
func (p *errorPages) fail(w http.ResponseWriter, r *http.Request, f flow.Fail) {
	e := oauth.AsError(f.Err)
	status := pageStatus(e)
	switch {
	case wantsJSON(r):
		writeDirect(w, r, status, e)
	case e.Code == oauth.InvalidClient && f.Client.ID != "":
		request.Of(r.Context()).Refuse(e)
		p.web.For(r).Error(w, status, strangerError(f, e, request.Of(r.Context()).Reference()))
	default:
		p.show(w, r, status, e)
	}
}

// strangerError returns the page about an unknown application, with advice on how to make it
// register again. It names the application by its registration, if that can still be read, or by
// the likely kind of application.
func strangerError(f flow.Fail, e *oauth.Error, requestID string) pages.Error {
	v := pages.Error{Message: pages.Told(sentence.Of(e)), Code: string(e.Code), RequestID: requestID}
	advise(&v, e, http.StatusBadRequest)
	kind, known := familyOf(f.Client.ID, f.Sent)
	if known {
		v.Advice = kind.steps
	}
	switch {
	case f.Client.Name != "":
		v.Client = f.Client.Name
	case known:
		v.Client = kind.name
	}
	return v
}

// stale answers a form that was made for another browser, or has expired.
func (p *errorPages) stale(w http.ResponseWriter, r *http.Request) {
	request.Of(r.Context()).Refuse(because(attempt.CauseForm, "stale or foreign form"))
	p.web.For(r).Error(w, http.StatusBadRequest, pages.Error{
		Title:   pages.Say("error.stale_title"),
		Message: pages.Say("error.stale_message"),
		Advice:  pages.Say("error.begin_again"), Home: true,
		RequestID: request.Of(r.Context()).Reference(),
	})
}

// answered answers a form that was sent before: from an old window, or after going back from the
// client.
func (p *errorPages) answered(w http.ResponseWriter, r *http.Request) {
	request.Of(r.Context()).Refuse(oauth.NewError(oauth.InvalidRequest, "the form was answered before"))
	p.web.For(r).Error(w, http.StatusConflict, pages.Error{
		Title:     pages.Say("error.answered_title"),
		Message:   pages.Say("error.answered_message"),
		Advice:    pages.Say("error.answered_advice"),
		RequestID: request.Of(r.Context()).Reference(),
	})
}

// lost answers a browser that returns from a provider without a sign-in that began here.
func (p *errorPages) lost(w http.ResponseWriter, r *http.Request) {
	request.Of(r.Context()).Refuse(because(attempt.CauseForm, "unknown, used or foreign state"))
	p.web.For(r).Error(w, http.StatusBadRequest, pages.Error{
		Title:   pages.Say("error.lost_title"),
		Message: pages.Say("error.lost_message"),
		Advice:  pages.Say("error.lost_advice"),
		Home:    true, RequestID: request.Of(r.Context()).Reference(),
	})
}

// unasked answers a browser that comes from a provider without a state: an administrator approved
// this server there, or a user chose it in the provider's list of applications.
func (p *errorPages) unasked(w http.ResponseWriter, r *http.Request, provider string) {
	request.Of(r.Context()).Refuse(oauth.NewError(oauth.InvalidRequest,
		"the provider sent the browser here without a state: no sign-in had begun"))
	p.web.For(r).Error(w, http.StatusBadRequest, pages.Error{
		Title:   pages.Say("error.unasked_title"),
		Message: pages.Say("error.unasked_message", "provider", provider),
		Advice:  pages.Say("error.unasked_advice"),
		Home:    true, RequestID: request.Of(r.Context()).Reference(),
	})
}

// badLink answers an invalid link.
func (p *errorPages) badLink(w http.ResponseWriter, r *http.Request, err error) {
	e := oauth.AsError(err)
	request.Of(r.Context()).Refuse(e)
	p.web.For(r).Error(w, http.StatusBadRequest, pages.Error{
		Title:     pages.Say("error.bad_link"),
		Message:   pages.Told(sentence.Of(e)),
		RequestID: request.Of(r.Context()).Reference(),
	})
}

// notYours answers a user who opened another user's link (RS-200).
func (p *errorPages) notYours(w http.ResponseWriter, r *http.Request) {
	request.Of(r.Context()).Refuse(oauth.NewError(oauth.AccessDenied, "the link is another person's"))
	p.web.For(r).Error(w, http.StatusForbidden, pages.Error{
		Title:   pages.Say("error.not_yours_title"),
		Message: pages.Say("error.not_yours_message"),
		Advice:  pages.Say("error.not_yours_advice"),
		Home:    true, RequestID: request.Of(r.Context()).Reference(),
	})
}

// because returns the error to record for a refusal with a cause.
func because(cause attempt.Cause, what string) *oauth.Error {
	return oauth.NewError(oauth.InvalidRequest, what).Because(cause.Because(errors.New(what)))
}

// misfit answers a request that no endpoint accepts: with a page for browsers, and JSON for
// programs.
func (p *errorPages) misfit(w http.ResponseWriter, r *http.Request, status int, v pages.Error) {
	p.misfitBecause(w, r, status, v, nil)
}

func (p *errorPages) misfitBecause(w http.ResponseWriter, r *http.Request, status int, v pages.Error, cause error) {
	e := oauth.NewError(oauth.InvalidRequest, p.web.pages.Plain(v.Message)).Because(cause) // in English, for programs
	if !wantsPage(r) {
		writeDirect(w, r, status, e)
		return
	}
	request.Of(r.Context()).Refuse(e)
	v.RequestID = request.Of(r.Context()).Reference()
	p.web.For(r).Error(w, status, v)
}

// notFound answers a request for an unknown path.
func (p *errorPages) notFound(w http.ResponseWriter, r *http.Request) {
	if !p.web.paths.isIssuerHost(r.Host) {
		p.foreignHost(w, r, http.StatusNotFound)
		return
	}
	p.misfit(w, r, http.StatusNotFound, pages.Error{
		Title: pages.Say("error.not_found"), Message: pages.Say("error.not_found_message"),
		Advice: pages.Say("error.not_found_advice"), Home: true,
	})
}

// wrongMethod answers a method that an endpoint does not support. Opening the address of a form's
// target again has this effect: the browser keeps that address after a wrong password.
func (p *errorPages) wrongMethod(w http.ResponseWriter, r *http.Request) {
	p.misfit(w, r, http.StatusMethodNotAllowed, pages.Error{
		Title:   pages.Say("error.method_title"),
		Message: pages.Say("error.method_message"),
		Advice:  pages.Say("error.begin_again"), Home: true,
	})
}

// crossOrigin answers a form that another site has sent.
func (p *errorPages) crossOrigin(w http.ResponseWriter, r *http.Request) {
	cause := attempt.CauseOrigin.Because(errors.New("by Origin or Sec-Fetch-Site another site has sent the form"))
	p.misfitBecause(w, r, http.StatusForbidden, pages.Error{
		Title:   pages.Say("error.cross_title"),
		Message: pages.Say("error.cross_message"),
		Advice:  pages.Say("error.cross_advice"), Home: true,
	}, cause)
}

// wantsPage reports whether a browser requests a page.
func wantsPage(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

// wantsJSON reports whether a program requests JSON.
func wantsJSON(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	return strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html")
}

func pageStatus(e *oauth.Error) int {
	if e.Status() == http.StatusUnauthorized {
		return http.StatusBadRequest // a page has no challenge, which 401 would require
	}
	return e.Status()
}

func handleRobots(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write([]byte("User-agent: *\nDisallow: /\n"))
}

// icon serves /favicon.ico, which browsers request in addition to the page's icon.
func (p *errorPages) icon(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, p.web.pages.Icon(), http.StatusMovedPermanently)
}
