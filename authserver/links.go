package authserver

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/authserver/internal/session"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/internal/ways"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// linkPages serves the pages of one-time links, and the page to request such a link.
type linkPages struct {
	users    *users.Users
	ways     *ways.Ways
	browsers *entry.Browsers
	off      bool // password sign-in is disabled
	issuer   string
	paths    paths
	web      *spokenPages
	forms    *pageForms
}

// linkForm is the sealed content of a link's forms, valid only for this link.
type linkForm struct {
	Token  storage.Hash
	UserID string `json:",omitempty"` // owner of the new passkey; for an invitation, a new id
	Sealed string `json:",omitempty"` // of the passkey, by package ways
}

// choices are the authentication methods that a link's user can choose.
type choices struct{ password, passkey bool }

// choices returns the choices of a link. A link that a user requested by mail offers only a
// password: a passkey counts as two factors, and a reader of the user's mail must not bypass the
// second factor.
func (p *linkPages) choices(s users.LinkView) choices {
	return choices{password: !p.off, passkey: p.ways.Site().Offered() && s.Kind != storage.LinkReset}
}

// open returns the purpose of a token's link in a browser, or users.ErrLink if it offers no choice.
func (p *linkPages) open(r *http.Request, token string, browser storage.Hash) (users.LinkView, error) {
	shown, err := p.users.ShowLink(r.Context(), token, browser)
	if err == nil && !shown.Stops && p.choices(shown) == (choices{}) {
		err = users.ErrLink
	}
	return shown, err
}

// page serves GET /link/{token}. It does not use the link up, because mail scanners and previews
// open links.
func (p *linkPages) page(w http.ResponseWriter, r *http.Request) {
	p.show(w, r, http.StatusOK, pages.Text{})
}

func (p *linkPages) show(w http.ResponseWriter, r *http.Request, status int, problem pages.Text) {
	var shown users.LinkView
	err := p.forms.sessions.As(w, r, func(browser string) (err error) {
		shown, err = p.open(r, r.PathValue("token"), secrets.Hash(browser))
		return err
	})
	if err != nil {
		p.refuse(w, r, err)
		return
	}
	if shown.Early && !shown.Stops {
		p.message(w, r, http.StatusForbidden, pages.LinkMessage{
			Heading: pages.Say("link.early"),
			Lead:    pages.Say("link.early_lead", "time", shown.NotBefore),
		})
		return
	}
	v, err := p.view(w, r, shown)
	if err != nil {
		p.forms.errors.show(w, r, pageStatus(oauth.AsError(err)), err)
		return
	}
	v.Problem = problem
	p.web.For(r).Link(w, status, v)
}

// view returns the page of a link, with a form for each choice.
func (p *linkPages) view(w http.ResponseWriter, r *http.Request, shown users.LinkView) (pages.Link, error) {
	token, choices := r.PathValue("token"), p.choices(shown)
	form, v := linkForm{Token: secrets.Hash(token)}, linkView(shown, choices)
	v.Action = p.paths.link + token
	if !shown.Stops && choices.passkey {
		asked, err := p.askPasskey(w, r, shown, &form)
		if err != nil {
			return v, refusal.Unavailable(err)
		}
		v.Passkey = asked
	}
	var err error
	if v.Step, err = p.forms.seal(w, r, purposeLink, form); v.Passkey != nil {
		v.Passkey.Action, v.Passkey.Step = v.Action, v.Step
	}
	return v, err
}

// askPasskey begins to create a passkey for the user of a link.
func (p *linkPages) askPasskey(
	w http.ResponseWriter, r *http.Request, shown users.LinkView, form *linkForm,
) (*pages.Passkey, error) {
	if form.UserID = shown.UserID; form.UserID == "" {
		form.UserID = users.NewID()
	}
	begun, err := p.ways.BeginPasskey(r.Context(), p.forms.sessions.Browser(w, r),
		storage.User{ID: form.UserID, Name: shown.Name})
	form.Sealed = begun.Sealed
	return &pages.Passkey{Options: string(begun.Options)}, err
}

func linkView(s users.LinkView, c choices) pages.Link {
	v := pages.Link{Username: s.Name, Password: c.password && !s.Stops}
	if !s.Stops {
		v.Until = pages.Say("link.until", "time", s.ExpiresAt)
	}
	switch {
	case s.Stops:
		v.Heading, v.Lead = pages.Say("link.stop"), pages.Say("link.stop_lead", "name", s.Name)
		v.Button = pages.Say("link.stop_button")
	case s.Kind == storage.LinkInvite:
		v.Heading, v.Lead = pages.Say("link.invite"), pages.Say("link.invite_lead", "name", s.Name)
		v.Button = pages.Say("link.invite_button")
		if c.passkey {
			v.Lead = pages.Say("link.invite_how", "name", s.Name)
		}
	default:
		v.Heading, v.Lead = pages.Say("link.recover"), pages.Say("link.recover_lead", "name", s.Name)
		v.Button = pages.Say("link.recover_button")
		if c.passkey {
			v.Heading, v.Lead = pages.Say("link.recover_how"), pages.Say("link.recover_how_lead", "name", s.Name)
		}
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
	token, use := r.PathValue("token"), users.LinkUse{Password: form.Get("password"), Browser: p.browser(w, r)}
	shown, err := p.open(r, token, use.Browser)
	if err == nil && sealed.Token != secrets.Hash(token) {
		err = users.ErrLink
	}
	choice := p.choices(shown)
	switch {
	case err != nil:
		p.refuse(w, r, err)
	case shown.Stops:
		p.stop(w, r, token)
	case choice.passkey && form.Get("credential") != "":
		p.usePasskey(w, r, shown, use, sealed, form)
	case choice.password && form.Has("password"):
		p.spend(w, r, shown.Kind, use)
	case choice.passkey && form.Has("credential"):
		p.show(w, r, http.StatusBadRequest, pages.Say("passkey.noscript"))
	default:
		p.show(w, r, http.StatusBadRequest, pages.Say("link.neither"))
	}
}

// usePasskey uses a link with the new passkey.
func (p *linkPages) usePasskey(
	w http.ResponseWriter, r *http.Request, shown users.LinkView, use users.LinkUse, sealed linkForm, form url.Values,
) {
	answer := p.forms.answer(w, r, form)
	made, err := p.ways.NewPasskey(r.Context(), answer.Browser,
		storage.User{ID: sealed.UserID, Name: shown.Name}, nameOf(form, session.Agent(r.UserAgent())),
		ways.Answer{Sealed: sealed.Sealed, Response: answer.Credential})
	if err == nil {
		use.Passkey = &made
		p.spend(w, r, shown.Kind, use)
		return
	}
	status, problem := wayProblem(err)
	if status == 0 {
		p.forms.errors.show(w, r, http.StatusServiceUnavailable, refusal.Unavailable(err))
		return
	}
	p.show(w, r, status, problem)
}

func (p *linkPages) stop(w http.ResponseWriter, r *http.Request, token string) {
	if err := p.users.StopLink(r.Context(), token); err != nil {
		p.refuse(w, r, err)
		return
	}
	p.message(w, r, http.StatusOK, pages.LinkMessage{
		Heading: pages.Say("link.stopped"), Lead: pages.Say("link.stopped_lead"),
	})
}

func (p *linkPages) spend(w http.ResponseWriter, r *http.Request, kind storage.LinkKind, use users.LinkUse) {
	account, err := p.users.UseLink(r.Context(), r.PathValue("token"), use)
	switch {
	case errors.Is(err, users.ErrPassword):
		p.show(w, r, http.StatusBadRequest, pages.Say("link.short"))
	case errors.Is(err, users.ErrCommon):
		p.show(w, r, http.StatusBadRequest, pages.Say("link.common"))
	case errors.Is(err, users.ErrExists) && kind == storage.LinkInvite:
		p.show(w, r, http.StatusConflict, pages.Say("link.taken"))
	case errors.Is(err, users.ErrExists): // the passkey
		p.show(w, r, http.StatusConflict, pages.Say("passkey.already"))
	case errors.Is(err, storage.ErrFull):
		p.show(w, r, http.StatusConflict, pages.Say("ways.full"))
	case err != nil:
		p.refuse(w, r, err)
	case kind == storage.LinkInvite:
		p.message(w, r, http.StatusOK, pages.LinkMessage{
			Heading: pages.Say("link.created"), Lead: pages.Say("link.created_lead", "name", account.Name),
		})
	default:
		p.clear(w, r)
		p.message(w, r, http.StatusOK, recovered(account.Name, use))
	}
}

// clear removes the account's session from the browser after a recovery has ended it. Another
// user's session stays.
func (p *linkPages) clear(w http.ResponseWriter, r *http.Request) {
	if current, held, err := p.forms.held(r, p.browsers); err == nil && current && held[0].userID == "" {
		p.forms.sessions.Clear(w, r)
	}
}

func recovered(name string, use users.LinkUse) pages.LinkMessage {
	if use.Passkey != nil {
		return pages.LinkMessage{
			Heading: pages.Say("link.recovered_passkey"), Lead: pages.Say("link.recovered_passkey_lead", "name", name),
		}
	}
	return pages.LinkMessage{
		Heading: pages.Say("link.recovered"), Lead: pages.Say("link.recovered_lead", "name", name),
	}
}

// refuse gives the same answer for used, expired, stopped and unknown links.
func (p *linkPages) refuse(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, users.ErrLink):
		p.message(w, r, http.StatusNotFound, pages.LinkMessage{
			Heading: pages.Say("link.gone"), Lead: pages.Say("link.gone_lead"),
		})
	case errors.Is(err, users.ErrBrowser):
		p.message(w, r, http.StatusForbidden, pages.LinkMessage{
			Heading: pages.Say("link.browser"), Lead: pages.Say("link.browser_lead"),
		})
	default:
		p.forms.errors.show(w, r, http.StatusServiceUnavailable, refusal.Unavailable(err))
	}
}

func (p *linkPages) message(w http.ResponseWriter, r *http.Request, status int, v pages.LinkMessage) {
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
	p.web.For(r).Forgotten(w, pages.Forgotten{Action: p.paths.forgotten, Step: step})
}

// send serves POST /login/forgotten. The response is the same for every name (PE-08).
func (p *linkPages) send(w http.ResponseWriter, r *http.Request) {
	if !p.offersMail() {
		p.forms.errors.notFound(w, r)
		return
	}
	form, ok := p.forms.open(w, r, purposeForgotten, &struct{}{})
	if !ok {
		return
	}
	until := p.users.Forgotten(r.Context(), users.Reset{
		Issuer: p.issuer, Browser: p.browser(w, r), From: p.forms.answer(w, r, form).Attempt,
	})
	p.message(w, r, http.StatusOK, pages.LinkMessage{
		Heading: pages.Say("forgotten.sent"), Lead: pages.Say("forgotten.sent_lead", "time", until),
	})
}

func (p *linkPages) offersMail() bool { return !p.off && p.users.HasMail() }
