package authserver

import (
	"net/http"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/flow"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/session"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// loginPages signs users in and out.
type loginPages struct {
	flow  *flow.Flow
	start *flow.StartPage
	entry *entry.SignIns
	off   bool // password sign-in is disabled
	forms *pageForms
	steps *steps
}

// page serves GET /login: the address bar shows it after a wrong password, and the start page links
// to it.
func (p *loginPages) page(w http.ResponseWriter, r *http.Request) {
	h, err := p.start.Home(r.Context(), p.forms.token(r))
	switch {
	case err != nil:
		p.forms.errors.show(w, r, http.StatusServiceUnavailable, err)
	case h.Visit != nil:
		redirect(w, p.steps.views.paths.account)
	default:
		p.steps.writeEntry(w, r, entry.Login{EndNotice: h.EndNotice})
	}
}

// login serves POST /login: it checks a password, begins a session and continues to the user's
// destination.
func (p *loginPages) login(w http.ResponseWriter, r *http.Request) {
	var to entry.Destination
	posted, ok := p.forms.open(w, r, purposeLogin, &to)
	if !ok {
		return
	}
	if p.off {
		p.forms.errors.show(w, r, http.StatusForbidden, errNoPasswords)
		return
	}
	x, a := &newSession{forms: p.forms, r: r}, p.forms.answer(w, r, posted)
	step, err := p.entry.Password(r.Context(), a, to, x.mint)
	if err != nil {
		p.problem(w, r, to, refusedProof{name: a.Attempt.Name, wrong: pages.Say("login.wrong")}, err)
		return
	}
	p.steps.signedIn(w, r, x, step)
}

var errNoPasswords = sentence.NewError(oauth.AccessDenied, "Signing in with a password is turned off on this server.", "no_passwords")

// problem shows the login page again with the problem.
func (p *loginPages) problem(
	w http.ResponseWriter, r *http.Request, to entry.Destination, after refusedProof, err error,
) {
	if after.status, after.problem = proofProblem(w, after.wrong, err); after.status == 0 {
		p.forms.errors.show(w, r, http.StatusServiceUnavailable, err)
		return
	}
	p.again(w, r, to, after)
}

// again shows the login page for its request, as far as the request can be examined before a user
// has signed in.
func (p *loginPages) again(w http.ResponseWriter, r *http.Request, to entry.Destination, after refusedProof) {
	login := entry.Login{To: to}
	if to.Query != "" {
		step := p.flow.Authorize(r.Context(), form.New(to.Query.Values()), storage.Hash{})
		enter, _ := step.(flow.SignInStep)
		var ok bool
		if login, ok = enter.Step.(entry.Login); !ok {
			p.steps.write(w, r, step)
			return
		}
	}
	p.steps.login(w, r, login, after)
}

// tooMany returns the text about too many attempts, and names the limit that was reached: a user
// whose account is named believes that someone is attacking it.
func tooMany(counted users.Counted, minutes int) pages.Text {
	switch counted {
	case users.ByNetwork:
		return pages.Count("login.busy_network", minutes)
	case users.ByServer:
		return pages.Count("login.busy_server", minutes)
	case users.ByCode:
		return pages.Count("login.busy_code", minutes)
	}
	return pages.Count("login.busy_account", minutes)
}

// minutes returns a wait in minutes for display, at least one.
func minutes(d time.Duration) int { return max(1, int(d.Round(time.Minute)/time.Minute)) }

// signOutForm is the content of the sign-out form. A page signs out only the user that it names,
// even if another user has become current in the browser since.
type signOutForm struct {
	UserID string            `json:"u"` // "" together with the parameter for all
	To     entry.Destination `json:"t"`
}

// signOut returns the sealed content of the form that signs out a page's user.
func (f *pageForms) signOut(
	w http.ResponseWriter, r *http.Request, u storage.User, to entry.Destination,
) (string, error) {
	return f.seal(w, r, purposeLogout, signOutForm{u.ID, to})
}

// logout serves POST /logout: it ends the session of the page's user, or all sessions of the
// browser.
func (p *loginPages) logout(w http.ResponseWriter, r *http.Request) {
	var form signOutForm
	posted, ok := p.forms.open(w, r, purposeLogout, &form)
	if !ok {
		return
	}
	all := posted.Get("all") != ""
	if form.UserID == "" && !all { // from the previous version, which named no user
		p.forms.errors.stale(w, r)
		return
	}
	current, held, err := p.forms.held(r, p.flow.Browsers)
	var staying []session.BrowserSession
	for _, h := range held {
		switch {
		case err != nil:
		case all || h.userID == form.UserID:
			err = p.flow.Browsers.SignOut(r.Context(), h.Hash)
		case h.userID != "":
			staying = append(staying, h.BrowserSession)
		}
	}
	if err != nil {
		p.forms.errors.show(w, r, http.StatusServiceUnavailable, err)
		return
	}
	if current && len(staying) > 0 && staying[0] == held[0].BrowserSession {
		p.forms.sessions.SetCurrent(w, r, staying[0], staying...)
	} else {
		p.forms.sessions.DropCurrent(w, r, staying...)
	}
	if len(p.flow.Options.Providers()) > 0 {
		p.forms.sessions.SetSignedOut(w)
	}
	paths, to := p.steps.views.paths, form.To
	switch {
	case to.Query != "":
		redirect(w, paths.request(p.flow.Options.ForAnother(to.Query)))
	case to.Connect != "":
		redirect(w, paths.connect+to.Connect)
	case to.Device != "":
		redirect(w, paths.forDevice(to.Device))
	default:
		p.steps.signedOut(w, r, len(staying) > 0)
	}
}

// signedOut shows the sign-out, and offers to sign out the other users of the browser.
func (s *steps) signedOut(w http.ResponseWriter, r *http.Request, others bool) {
	v := pages.SignedOut{Action: s.views.paths.logout}
	if others {
		var err error
		if v.Step, err = s.forms.seal(w, r, purposeLogout, signOutForm{}); err != nil {
			s.errors.show(w, r, http.StatusServiceUnavailable, err)
			return
		}
	}
	s.web.For(r).SignedOut(w, v)
}

// passkey serves POST /login/passkey.
func (p *loginPages) passkey(w http.ResponseWriter, r *http.Request) {
	var f entry.PasskeyForm
	posted, ok := p.forms.open(w, r, purposePasskey, &f)
	if !ok {
		return
	}
	x, a := &newSession{forms: p.forms, r: r}, p.forms.answer(w, r, posted)
	step, err := entry.Step(nil), errNoScript
	if a.Given() {
		step, err = p.entry.Passkey(r.Context(), f, a, x.mint)
	}
	if err != nil {
		p.problem(w, r, f.To, refusedProof{unknown: unknownPasskey(err)}, err)
		return
	}
	p.steps.signedIn(w, r, x, step)
}

// recovery serves POST /login/recovery.
func (p *loginPages) recovery(w http.ResponseWriter, r *http.Request) {
	var to entry.Destination
	posted, ok := p.forms.open(w, r, purposeLogin, &to)
	if !ok {
		return
	}
	x, a := &newSession{forms: p.forms, r: r}, p.forms.answer(w, r, posted)
	step, err := p.entry.Recovery(r.Context(), a, to, x.mint)
	if err != nil {
		p.problem(w, r, to, refusedProof{name: a.Attempt.Name, wrong: pages.Say("second.wrong_recovery")}, err)
		return
	}
	p.steps.signedIn(w, r, x, step)
}
