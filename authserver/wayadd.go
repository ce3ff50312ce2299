package authserver

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/session"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/ways"
)

// passkey serves GET /account/passkey.
func (p *wayPages) passkey(w http.ResponseWriter, r *http.Request) {
	v, ok := p.mine(w, r, pagePasskey)
	if !ok {
		return
	}
	if to, ok := p.onward(w, r); ok {
		p.showPasskey(w, r, v.User, to, refusedProof{status: http.StatusOK, name: session.Agent(r.UserAgent())})
	}
}

func (p *wayPages) showPasskey(
	w http.ResponseWriter, r *http.Request, u storage.User, to entry.Destination, after refusedProof,
) {
	if !p.enrol.Ways.Site().Offered() {
		redirect(w, p.atWays()) // the page shows the reason
		return
	}
	begun, err := p.enrol.Ways.BeginPasskey(r.Context(), p.forms.sessions.Browser(w, r), u)
	var sealed string
	if err == nil {
		sealed, err = p.forms.seal(w, r, purposePasskeyAdd, entry.WayForm{UserID: u.ID, Sealed: begun.Sealed, To: to})
	}
	if err != nil {
		p.failed(w, r, err)
		return
	}
	p.steps.web.For(r).AddPasskey(w, after.status, pages.AddPasskey{
		Passkey: pages.Passkey{Action: p.path(pagePasskey), Step: sealed, Options: string(begun.Options)},
		Name:    after.name, Problem: after.problem, BackURL: p.atWays(),
	})
}

// addPasskey serves POST /account/passkey.
func (p *wayPages) addPasskey(w http.ResponseWriter, r *http.Request) {
	f, ok := p.owner(w, r, pagePasskey, purposePasskeyAdd)
	if !ok {
		return
	}
	a := p.forms.answer(w, r, f.Values)
	way, first, err := storage.Way{}, false, errNoScript
	if a.Given() {
		name := nameOf(f.Values, session.Agent(r.UserAgent()))
		way, first, err = p.enrol.AddPasskey(r.Context(), f.by, f.WayForm, a, name)
	}
	if err != nil {
		p.again(w, r, err, f.Get("name"), func(after refusedProof) { p.showPasskey(w, r, f.by.User, f.To, after) })
		return
	}
	p.added(w, r, way, f.To, first)
}

// nameOf returns the user's name for a method, or a default.
func nameOf(form url.Values, otherwise string) string {
	return cmp.Or(strings.TrimSpace(form.Get("name")), otherwise, "Passkey")
}

// app serves GET /account/app.
func (p *wayPages) app(w http.ResponseWriter, r *http.Request) {
	v, ok := p.mine(w, r, pageApp)
	if !ok {
		return
	}
	app, err := p.enrol.Ways.BeginApp(p.forms.sessions.Browser(w, r), v.User)
	if err != nil {
		p.failed(w, r, err)
		return
	}
	to, ok := p.onward(w, r)
	if !ok {
		return
	}
	f := entry.WayForm{UserID: v.User.ID, Sealed: app.Sealed, Secret: app.Secret, URI: app.URI, To: to}
	p.showApp(w, r, f, refusedProof{status: http.StatusOK})
}

func (p *wayPages) showApp(w http.ResponseWriter, r *http.Request, f entry.WayForm, after refusedProof) {
	sealed, err := p.forms.seal(w, r, purposeAppAdd, f)
	var code pages.QR
	if err == nil {
		code, err = picture(f.URI, pages.Say("addapp.picture"))
	}
	if err != nil {
		p.failed(w, r, err)
		return
	}
	p.steps.web.For(r).AddApp(w, after.status, pages.AddApp{
		Action: p.path(pageApp), Step: sealed, QR: code, Secret: fours(f.Secret),
		Name: after.name, Problem: after.problem, BackURL: p.atWays(),
	})
}

// fours returns a secret in groups of four letters.
func fours(s string) (out []string) {
	for ; len(s) > 4; s = s[4:] {
		out = append(out, s[:4])
	}
	return append(out, s)
}

// addApp serves POST /account/app.
func (p *wayPages) addApp(w http.ResponseWriter, r *http.Request) {
	f, ok := p.owner(w, r, pageApp, purposeAppAdd)
	if !ok {
		return
	}
	a := p.forms.answer(w, r, f.Values)
	way, first, err := p.enrol.AddApp(r.Context(), f.by, f.WayForm, a, nameOf(f.Values, "App"))
	switch {
	case errors.Is(err, ways.ErrOver):
		redirect(w, p.path(pageApp)) // with a new secret
	case err != nil:
		p.again(w, r, err, f.Get("name"), func(after refusedProof) { p.showApp(w, r, f.WayForm, after) })
	default:
		p.added(w, r, way, f.To, first)
	}
}

// onward returns the destination of a user who had to add a method.
func (p *wayPages) onward(w http.ResponseWriter, r *http.Request) (to entry.Destination, ok bool) {
	if r.URL.Query().Has("to") {
		return p.forms.destination(w, r)
	}
	return to, true
}

// added redirects to the destination, or back to the methods, and suggests a second method after
// the first.
func (p *wayPages) added(
	w http.ResponseWriter, r *http.Request, way storage.Way, to entry.Destination, first bool,
) {
	if to != (entry.Destination{}) {
		p.steps.stepUp(w, r, to)
		return
	}
	if !first {
		redirect(w, p.atWays())
		return
	}
	p.steps.web.For(r).WayAdded(w, pages.WayAdded{
		Name: way.Name, RecoveryURL: p.path(pageRecovery), BackURL: p.atWays(),
	})
}
