package authserver

import (
	"errors"
	"net/http"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/flow"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/internal/wire"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/session"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/web"
)

// loginPages sign people in with a password, and out.
type loginPages struct {
	flow      *flow.Flow
	accounts  *flow.Accounts
	passwords *flow.Passwords
	off       bool // accounts with a password do not sign in
	forms     *pageForms
	steps     *steps
}

// page serves GET /login: the address bar shows it after a wrong password, and
// the start page leads here.
func (p *loginPages) page(w http.ResponseWriter, r *http.Request) {
	h, err := p.accounts.Home(r.Context(), p.forms.token(r))
	switch {
	case err != nil:
		p.forms.errors.show(w, r, http.StatusServiceUnavailable, err)
	case h.Visit != nil:
		http.Redirect(w, r, p.steps.views.paths.home, http.StatusSeeOther)
	default:
		p.steps.write(w, r, flow.Login{EndNotice: h.EndNotice})
	}
}

// login serves POST /login: it checks a password, begins a session and goes
// back to where the person came from.
func (p *loginPages) login(w http.ResponseWriter, r *http.Request) {
	var to flow.Destination
	posted, ok := p.forms.open(w, r, purposeLogin, &to)
	if !ok {
		return
	}
	if p.off {
		p.forms.errors.show(w, r, http.StatusForbidden, errNoPasswords)
		return
	}
	sessions, from := p.forms.sessions, p.forms.networks(r)
	a := users.Attempt{
		Name:        posted.Get("username"),
		Password:    posted.Get("password"),
		Network:     from[0],
		Wider:       from[1:],
		KnownDevice: sessions.Knows(r, posted.Get("username")),
	}
	var begun session.Minted
	err := p.passwords.SignIn(r.Context(), a, to, func(userID string) storage.Session {
		begun = p.forms.mint(r, userID, methodPassword)
		return begun.Session
	})
	if err != nil {
		p.problem(w, r, to, a.Name, err)
		return
	}
	sessions.SetCookie(w, begun)
	sessions.Remember(w, a.Name)
	http.Redirect(w, r, p.steps.views.paths.destination(to), http.StatusSeeOther)
}

var errNoPasswords = oauth.NewError(oauth.AccessDenied, "Signing in with a password is turned off on this server.")

func (p *loginPages) problem(w http.ResponseWriter, r *http.Request, to flow.Destination, name string, err error) {
	var throttled *users.ThrottledError
	switch {
	case errors.As(err, &throttled):
		wire.SetRetryAfter(w.Header(), throttled.RetryAfter)
		p.again(w, r, to, attempt{
			status: http.StatusTooManyRequests, name: name,
			problem: tooMany(throttled.Counted, minutes(throttled.RetryAfter)),
		})
	case errors.Is(err, users.ErrWrong):
		p.again(w, r, to, attempt{
			status: http.StatusUnauthorized, name: name,
			problem: web.Say("login.wrong"),
		})
	default:
		p.forms.errors.show(w, r, http.StatusServiceUnavailable, err)
	}
}

// again shows the login page for the request that it belongs to, as far as
// that can be known before a person has signed in.
func (p *loginPages) again(w http.ResponseWriter, r *http.Request, to flow.Destination, after attempt) {
	login := flow.Login{To: to}
	if to.Query != "" {
		step := p.flow.Authorize(r.Context(), form.New(to.Query.Values()), storage.Hash{})
		var ok bool
		if login, ok = step.(flow.Login); !ok {
			p.steps.write(w, r, step)
			return
		}
	}
	p.steps.login(w, r, login, after)
}

// tooMany says of what there are too many attempts: who reads that it is their account
// believes that an attacker is after it.
func tooMany(counted users.Counted, minutes int) web.Text {
	switch counted {
	case users.ByNetwork:
		return web.Count("login.busy_network", minutes)
	case users.ByServer:
		return web.Count("login.busy_server", minutes)
	}
	return web.Count("login.busy_account", minutes)
}

// minutes is a wait as people are told of it, one at least.
func minutes(d time.Duration) int { return max(1, int(d.Round(time.Minute)/time.Minute)) }

// logout serves POST /logout.
func (p *loginPages) logout(w http.ResponseWriter, r *http.Request) {
	var to flow.Destination
	if _, ok := p.forms.open(w, r, purposeLogout, &to); !ok {
		return
	}
	sessions, paths := p.forms.sessions, p.steps.views.paths
	if token, ok := sessions.Token(r); ok {
		if err := p.passwords.SignOut(r.Context(), token); err != nil {
			p.forms.errors.show(w, r, http.StatusServiceUnavailable, err)
			return
		}
	}
	sessions.Clear(w)
	switch {
	case to.Query != "":
		http.Redirect(w, r, paths.authorize+"?"+string(p.flow.Ways.ForAnother(to.Query)), http.StatusSeeOther)
	case to.Connect != "":
		http.Redirect(w, r, paths.connect+to.Connect, http.StatusSeeOther)
	case to.Device != "":
		http.Redirect(w, r, paths.forDevice(to.Device), http.StatusSeeOther)
	default:
		p.steps.web.For(r).SignedOut(w)
	}
}
