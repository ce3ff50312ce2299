package authserver

import (
	"context"
	"errors"
	"net/http"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/users"
)

// SetupLink creates a one-time link that creates the first administrator. It is valid for an hour,
// and earlier links become invalid. SetupLink returns "" if an administrator exists. Show the link
// only to the operator: the first person to open it gets control of the server.
func (s *Server) SetupLink(ctx context.Context) (link string, err error) {
	link, _, err = s.users.SetupLink(ctx, s.cfg.Issuer)
	if errors.Is(err, users.ErrExists) {
		return "", nil
	}
	return link, err
}

// setupPages creates the first administrator.
type setupPages struct {
	users  *users.Users
	off    bool // password sign-in is disabled
	issuer string
	path   string
	// passkeys reports whether passkeys work here, and console whether the console is at this
	// listener.
	passkeys, console bool
	second            bool // a second factor is required of administrators
	web               *spokenPages
	forms             *pageForms
}

// setup serves GET and POST /setup, which create the first administrator with the one-time token of
// the setup link. Once an administrator exists, it always answers 404.
func (p *setupPages) setup(w http.ResponseWriter, r *http.Request) {
	open, err := p.users.SetupOpen(r.Context())
	switch {
	case p.off: // the administrator could not sign in
		p.forms.errors.show(w, r, http.StatusNotFound, errNoPasswords)
	case err != nil:
		p.forms.errors.show(w, r, http.StatusServiceUnavailable, refusal.Unavailable(err))
	case !open:
		p.forms.errors.misfit(w, r, http.StatusNotFound, pages.Error{
			Title:   pages.Say("setup.done"),
			Message: pages.Say("setup.done_message"),
			Advice:  pages.Say("setup.done_advice"), Home: true,
		})
	case r.Method == http.MethodPost:
		p.complete(w, r)
	default:
		p.show(w, r, http.StatusOK, pages.Setup{})
	}
}

func (p *setupPages) show(w http.ResponseWriter, r *http.Request, status int, v pages.Setup) {
	step, err := p.forms.seal(w, r, purposeSetup, entry.Destination{})
	if err != nil {
		p.forms.errors.show(w, r, http.StatusInternalServerError, err)
		return
	}
	v.Action, v.Step = p.path, step
	p.web.For(r).Setup(w, status, v)
}

func (p *setupPages) complete(w http.ResponseWriter, r *http.Request) {
	form, ok := p.forms.open(w, r, purposeSetup, &entry.Destination{})
	if !ok {
		return
	}
	name := form.Get("username")
	u, err := p.users.CompleteSetup(r.Context(), form.Get("token"), name, form.Get("password"))
	if err == nil {
		p.web.For(r).SetupDone(w, pages.SetupDone{
			Username: u.Name, Issuer: p.issuer, Passkeys: p.passkeys, Second: p.second, Console: p.console,
		})
		return
	}
	problem, status := setupProblem(err)
	if status == 0 {
		p.forms.errors.show(w, r, http.StatusServiceUnavailable, refusal.Unavailable(err))
		return
	}
	p.show(w, r, status, pages.Setup{Username: name, Problem: problem, Token: form.Get("token")})
}

// check serves POST /setup/check. The setup page calls it to check whether the token of its link is
// still valid. It answers 204, or 410 for every invalid token, and reveals no more to strangers
// than the form.
func (p *setupPages) check(w http.ResponseWriter, r *http.Request) {
	form, err := readBody(r)
	if err == nil {
		err = p.forms.unseal(w, r, purposeSetup, form.Get("step"), &entry.Destination{})
	}
	if err != nil || p.off {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(setupStatus(p.users.CheckSetup(r.Context(), form.Get("token"))))
}

func setupStatus(err error) int {
	switch _, status := setupProblem(err); {
	case err == nil:
		return http.StatusNoContent
	case status != 0:
		return http.StatusGone
	}
	return http.StatusServiceUnavailable
}

func setupProblem(err error) (pages.Text, int) {
	switch {
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrExpired):
		return pages.Say("setup.bad_link"),
			http.StatusForbidden
	case errors.Is(err, users.ErrExists), errors.Is(err, storage.ErrExists):
		return pages.Say("setup.exists"), http.StatusConflict
	case errors.Is(err, users.ErrName):
		return pages.Say("setup.bad_name"), http.StatusBadRequest
	case errors.Is(err, users.ErrPassword):
		return pages.Say("setup.short_password"), http.StatusBadRequest
	case errors.Is(err, users.ErrCommon):
		return pages.Say("setup.common_password"),
			http.StatusBadRequest
	}
	return pages.Text{}, 0
}
