package authserver

import (
	"errors"
	"net/http"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/web"
)

// linkPages are those of one-time links, and the one on which a person asks for such a link.
type linkPages struct {
	users  *users.Users
	off    bool // accounts with a password do not sign in
	issuer string
	paths  paths
	web    *spokenPages
	forms  *pageForms
}

// linkForm is what the form of a link is sealed with: it is good for this link alone.
type linkForm struct{ Token storage.Hash }

// page serves GET /link/{token}. It spends nothing: mail scanners and previews open links.
func (p *linkPages) page(w http.ResponseWriter, r *http.Request) {
	p.show(w, r, http.StatusOK, web.Text{})
}

func (p *linkPages) show(w http.ResponseWriter, r *http.Request, status int, problem web.Text) {
	token := r.PathValue("token")
	shown, err := p.users.ShowLink(r.Context(), token, p.browser(w, r))
	if p.off && err == nil {
		err = users.ErrLink
	}
	if err != nil {
		p.refuse(w, r, err)
		return
	}
	if shown.Early && !shown.Stops {
		p.message(w, r, http.StatusForbidden, web.LinkMessage{
			Heading: web.Say("link.early"),
			Lead:    web.Say("link.early_lead", "time", shown.NotBefore.UTC().Format("2006-01-02 15:04 UTC")),
		})
		return
	}
	step, err := p.forms.seal(w, r, purposeLink, linkForm{secrets.Hash(token)})
	if err != nil {
		p.forms.errors.show(w, r, http.StatusInternalServerError, err)
		return
	}
	v := linkView(shown)
	v.Action, v.Step, v.Problem = p.paths.link+token, step, problem
	p.web.For(r).Link(w, status, v)
}

func linkView(s users.Shown) web.Link {
	v := web.Link{Username: s.Name, Password: true}
	switch {
	case s.Stops:
		v.Heading, v.Lead = web.Say("link.stop"), web.Say("link.stop_lead", "name", s.Name)
		v.Button, v.Password = web.Say("link.stop_button"), false
	case s.Kind == storage.LinkInvite:
		v.Heading, v.Lead = web.Say("link.invite"), web.Say("link.invite_lead", "name", s.Name)
		v.Button = web.Say("link.invite_button")
	default:
		v.Heading, v.Lead = web.Say("link.recover"), web.Say("link.recover_lead", "name", s.Name)
		v.Button = web.Say("link.recover_button")
	}
	return v
}

// use serves POST /link/{token}.
func (p *linkPages) use(w http.ResponseWriter, r *http.Request) {
	var sealed linkForm
	form, ok := p.forms.open(w, r, purposeLink, &sealed)
	if !ok {
		return
	}
	token, browser := r.PathValue("token"), p.browser(w, r)
	shown, err := p.users.ShowLink(r.Context(), token, browser)
	if err == nil && (p.off || sealed.Token != secrets.Hash(token)) {
		err = users.ErrLink
	}
	switch {
	case err != nil:
		p.refuse(w, r, err)
	case shown.Stops:
		p.stop(w, r, token)
	default:
		p.setPassword(w, r, shown.Kind, form.Get("password"), browser)
	}
}

func (p *linkPages) stop(w http.ResponseWriter, r *http.Request, token string) {
	if err := p.users.StopLink(r.Context(), token); err != nil {
		p.refuse(w, r, err)
		return
	}
	p.message(w, r, http.StatusOK, web.LinkMessage{
		Heading: web.Say("link.stopped"), Lead: web.Say("link.stopped_lead"),
	})
}

func (p *linkPages) setPassword(
	w http.ResponseWriter, r *http.Request, kind storage.LinkKind, password string, browser storage.Hash,
) {
	account, err := p.users.UseLink(r.Context(), r.PathValue("token"), password, browser)
	switch {
	case errors.Is(err, users.ErrPassword):
		p.show(w, r, http.StatusBadRequest, web.Say("link.short"))
	case errors.Is(err, users.ErrCommon):
		p.show(w, r, http.StatusBadRequest, web.Say("link.common"))
	case errors.Is(err, users.ErrExists):
		p.show(w, r, http.StatusConflict, web.Say("link.taken"))
	case err != nil:
		p.refuse(w, r, err)
	case kind == storage.LinkInvite:
		p.message(w, r, http.StatusOK, web.LinkMessage{
			Heading: web.Say("link.created"), Lead: web.Say("link.created_lead", "name", account.Name),
		})
	default:
		p.forms.sessions.Clear(w) // it has ended
		p.message(w, r, http.StatusOK, web.LinkMessage{
			Heading: web.Say("link.recovered"), Lead: web.Say("link.recovered_lead", "name", account.Name),
		})
	}
}

// refuse answers alike for links that were used, have expired, were stopped or never were.
func (p *linkPages) refuse(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, users.ErrLink):
		p.message(w, r, http.StatusNotFound, web.LinkMessage{
			Heading: web.Say("link.gone"), Lead: web.Say("link.gone_lead"),
		})
	case errors.Is(err, users.ErrBrowser):
		p.message(w, r, http.StatusForbidden, web.LinkMessage{
			Heading: web.Say("link.browser"), Lead: web.Say("link.browser_lead"),
		})
	default:
		p.forms.errors.show(w, r, http.StatusServiceUnavailable, refusal.Unavailable(err))
	}
}

func (p *linkPages) message(w http.ResponseWriter, r *http.Request, status int, v web.LinkMessage) {
	p.web.For(r).LinkMessage(w, status, v)
}

func (p *linkPages) browser(w http.ResponseWriter, r *http.Request) storage.Hash {
	return secrets.Hash(p.forms.sessions.Browser(w, r))
}

// forgotten serves GET /login/forgotten.
func (p *linkPages) forgotten(w http.ResponseWriter, r *http.Request) {
	if !p.offersMail() {
		p.forms.errors.notFound(w, r)
		return
	}
	step, err := p.forms.seal(w, r, purposeForgotten, struct{}{})
	if err != nil {
		p.forms.errors.show(w, r, http.StatusInternalServerError, err)
		return
	}
	p.web.For(r).Forgotten(w, web.Forgotten{Action: p.paths.forgotten, Step: step})
}

// send serves POST /login/forgotten. The answer is the same for every name (PE-08).
func (p *linkPages) send(w http.ResponseWriter, r *http.Request) {
	if !p.offersMail() {
		p.forms.errors.notFound(w, r)
		return
	}
	form, ok := p.forms.open(w, r, purposeForgotten, &struct{}{})
	if !ok {
		return
	}
	p.users.Forgotten(r.Context(), users.Reset{
		Issuer: p.issuer, Name: form.Get("username"), Browser: p.browser(w, r), Network: p.forms.networks(r)[0],
	})
	p.message(w, r, http.StatusOK, web.LinkMessage{
		Heading: web.Say("forgotten.sent"), Lead: web.Say("forgotten.sent_lead"),
	})
}

func (p *linkPages) offersMail() bool { return !p.off && p.users.HasMail() }
