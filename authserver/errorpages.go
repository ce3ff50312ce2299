package authserver

import (
	"errors"
	"net/http"
	"strings"

	"github.com/mcp-authd/mcp-authd/attempt"
	"github.com/mcp-authd/mcp-authd/authserver/internal/clients"
	"github.com/mcp-authd/mcp-authd/authserver/internal/flow"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/web"
)

// errorPages writes pages that only have a message.
type errorPages struct {
	web   *spokenPages
	hosts *foreignHosts
}

// show shows the error page. Only a protocol error's own words reach it.
func (p *errorPages) show(w http.ResponseWriter, r *http.Request, status int, err error) {
	e := oauth.AsError(err)
	noteError(r, e)
	setRetryAfter(w, e, status)
	v := web.Error{Message: web.Told(e.Description), Code: string(e.Code), RequestID: requestID(r)}
	advise(&v, e, status)
	if errors.As(err, new(clients.Unfetched)) {
		v.Title = web.Say("error.unread_title")
		v.Advice = web.Say("error.unread_advice")
	}
	p.web.For(r).Error(w, status, v)
}

// fail answers a request whose client or redirect URI is unknown. Programs that ask for JSON get JSON: some
// clients probe this way whether their registration is still valid.
func (p *errorPages) fail(w http.ResponseWriter, r *http.Request, f flow.Fail) {
	e := oauth.AsError(f.Err)
	status := pageStatus(e)
	switch {
	case wantsJSON(r):
		writeDirect(w, r, status, e)
	case e.Code == oauth.InvalidClient && f.Client.ID != "":
		noteError(r, e)
		p.web.For(r).Error(w, status, strangerError(f, e, requestID(r)))
	default:
		p.show(w, r, status, e)
	}
}

// strangerError tells a person that the application that sent them is unknown, and how to make it register
// again. It names the application by its registration, if that can still be read, or by the kind of
// application that the request looks like.
func strangerError(f flow.Fail, e *oauth.Error, requestID string) web.Error {
	v := web.Error{Message: web.Told(e.Description), Code: string(e.Code), RequestID: requestID}
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

// stale answers a form that was made for another browser, or too long ago.
func (p *errorPages) stale(w http.ResponseWriter, r *http.Request) {
	noteError(r, because(attempt.CauseForm, "stale or foreign form"))
	p.web.For(r).Error(w, http.StatusBadRequest, web.Error{
		Title:   web.Say("error.stale_title"),
		Message: web.Say("error.stale_message"),
		Advice:  web.Say("error.begin_again"), Home: true,
		RequestID: requestID(r),
	})
}

// answered answers a form that was sent before: from a window that was left open, or after going back
// from the client.
func (p *errorPages) answered(w http.ResponseWriter, r *http.Request) {
	noteError(r, oauth.NewError(oauth.InvalidRequest, "the form was answered before"))
	p.web.For(r).Error(w, http.StatusConflict, web.Error{
		Title:     web.Say("error.answered_title"),
		Message:   web.Say("error.answered_message"),
		Advice:    web.Say("error.answered_advice"),
		RequestID: requestID(r),
	})
}

// lost answers a browser that returns from a provider without having been sent there from here.
func (p *errorPages) lost(w http.ResponseWriter, r *http.Request) {
	noteError(r, because(attempt.CauseForm, "unknown, used or foreign state"))
	p.web.For(r).Error(w, http.StatusBadRequest, web.Error{
		Title:   web.Say("error.lost_title"),
		Message: web.Say("error.lost_message"),
		Advice:  web.Say("error.lost_advice"),
		Home:    true, RequestID: requestID(r),
	})
}

// unasked answers a browser that comes from a provider without a state: an administrator approved this server
// there, or a person chose it in the provider's list of applications.
func (p *errorPages) unasked(w http.ResponseWriter, r *http.Request, provider string) {
	noteError(r, oauth.NewError(oauth.InvalidRequest,
		"the provider sent the browser here without a state: no sign-in had begun"))
	p.web.For(r).Error(w, http.StatusBadRequest, web.Error{
		Title:   web.Say("error.unasked_title"),
		Message: web.Say("error.unasked_message", "provider", provider),
		Advice:  web.Say("error.unasked_advice"),
		Home:    true, RequestID: requestID(r),
	})
}

// badLink answers an invalid link.
func (p *errorPages) badLink(w http.ResponseWriter, r *http.Request, err error) {
	e := oauth.AsError(err)
	noteError(r, e)
	p.web.For(r).Error(w, http.StatusBadRequest, web.Error{
		Title: web.Say("error.bad_link"), Message: web.Told(e.Description), RequestID: requestID(r),
	})
}

// notYours answers a person who opened another person's link (RS-200).
func (p *errorPages) notYours(w http.ResponseWriter, r *http.Request) {
	noteError(r, oauth.NewError(oauth.AccessDenied, "the link is another person's"))
	p.web.For(r).Error(w, http.StatusForbidden, web.Error{
		Title:   web.Say("error.not_yours_title"),
		Message: web.Say("error.not_yours_message"),
		Advice:  web.Say("error.not_yours_advice"),
		Home:    true, RequestID: requestID(r),
	})
}

// because returns the error to record for a refusal whose cause decides the verdict.
func because(cause attempt.Cause, what string) *oauth.Error {
	return oauth.NewError(oauth.InvalidRequest, what).Because(cause.Because(errors.New(what)))
}

// misfit answers a request that no endpoint takes: with a page for people, and JSON for
// programs.
func (p *errorPages) misfit(w http.ResponseWriter, r *http.Request, status int, v web.Error) {
	p.misfitBecause(w, r, status, v, nil)
}

func (p *errorPages) misfitBecause(w http.ResponseWriter, r *http.Request, status int, v web.Error, cause error) {
	e := oauth.NewError(oauth.InvalidRequest, p.web.pages.Plain(v.Message)).Because(cause) // in English, for programs
	if !wantsPage(r) {
		writeDirect(w, r, status, e)
		return
	}
	noteError(r, e)
	v.RequestID = requestID(r)
	p.web.For(r).Error(w, status, v)
}

// notFound answers what is not here.
func (p *errorPages) notFound(w http.ResponseWriter, r *http.Request) {
	if !p.web.paths.isIssuerHost(r.Host) {
		p.foreignHost(w, r, http.StatusNotFound)
		return
	}
	p.misfit(w, r, http.StatusNotFound, web.Error{
		Title: web.Say("error.not_found"), Message: web.Say("error.not_found_message"),
		Advice: web.Say("error.not_found_advice"), Home: true,
	})
}

// wrongMethod answers a method that an endpoint has not. Where a form ends, that is what
// opening the address again does: the browser keeps it after a wrong password.
func (p *errorPages) wrongMethod(w http.ResponseWriter, r *http.Request) {
	p.misfit(w, r, http.StatusMethodNotAllowed, web.Error{
		Title:   web.Say("error.method_title"),
		Message: web.Say("error.method_message"),
		Advice:  web.Say("error.begin_again"), Home: true,
	})
}

// crossOrigin answers a form that another site has sent.
func (p *errorPages) crossOrigin(w http.ResponseWriter, r *http.Request) {
	cause := attempt.CauseOrigin.Because(errors.New("by Origin or Sec-Fetch-Site another site has sent the form"))
	p.misfitBecause(w, r, http.StatusForbidden, web.Error{
		Title:   web.Say("error.cross_title"),
		Message: web.Say("error.cross_message"),
		Advice:  web.Say("error.cross_advice"), Home: true,
	}, cause)
}

// wantsPage reports whether a person will look at the answer.
func wantsPage(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

// wantsJSON reports whether a program will read it.
func wantsJSON(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	return strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html")
}

func pageStatus(e *oauth.Error) int {
	if e.Status() == http.StatusUnauthorized {
		return http.StatusBadRequest // 401 would promise a challenge that a page has not
	}
	return e.Status()
}

func handleRobots(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write([]byte("User-agent: *\nDisallow: /\n"))
}

// icon serves /favicon.ico, which browsers ask for beside the icon that pages name.
func (p *errorPages) icon(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, p.web.pages.Icon(), http.StatusMovedPermanently)
}
