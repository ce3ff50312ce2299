package authserver

import (
	"errors"
	"net/http"
	"slices"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/flow"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/session"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// chooseForm is the content of the form that chooses an account, sealed and bound to the browser.
type chooseForm struct {
	Query   form.Query   `json:"q"`
	Session storage.Hash `json:"s"`
}

// chooseAccount shows the browser's signed-in users and no other accounts, so that a client that
// names an account learns nothing.
func (s *steps) chooseAccount(w http.ResponseWriter, r *http.Request, step flow.ChooseAccount) {
	a := step.Request
	v := pages.Chooser{
		Action:     s.views.paths.choose,
		Client:     clientParty(a.Client),
		Resource:   resourceParty(a.Resource.Resource),
		AnotherURL: s.views.paths.request(s.views.flow.Options.ForAnother(a.Query.AnotherAccount())),
	}
	_, held := s.forms.sessions.Held(r)
	signedIn, err := s.views.flow.Browsers.SignedIn(r.Context(), hashes(held))
	if err != nil {
		s.errors.show(w, r, http.StatusServiceUnavailable, err)
		return
	}
	for _, visit := range signedIn {
		sealed, err := s.forms.seal(w, r, purposeChoose, chooseForm{a.Query.Chosen(), visit.Session.Hash})
		if err != nil {
			s.errors.show(w, r, http.StatusBadRequest, err)
			return
		}
		v.Accounts = append(v.Accounts, pages.Signed{Username: visit.User.Name, Step: sealed})
	}
	s.web.For(r).Chooser(w, v)
}

func hashes(held []session.BrowserSession) (out []storage.Hash) {
	for _, h := range held {
		out = append(out, h.Hash)
	}
	return out
}

// choose serves POST /choose: a user continues with an account that is signed in in the browser.
func (p *loginPages) choose(w http.ResponseWriter, r *http.Request) {
	var form chooseForm
	if _, ok := p.forms.open(w, r, purposeChoose, &form); !ok {
		return
	}
	_, held := p.forms.sessions.Held(r)
	i := slices.IndexFunc(held, func(h session.BrowserSession) bool { return h.Hash == form.Session })
	if i < 0 { // signed out, perhaps in another tab
		p.forms.errors.stale(w, r)
		return
	}
	p.forms.sessions.SetCurrent(w, r, held[i], held...)
	if v, err := p.flow.Browsers.Visit(r.Context(), form.Session, storage.VisitKey{}); err == nil && v != nil {
		p.forms.follow(w, r, p.flow.Browsers, form.Session, v.User)
	}
	redirect(w, p.steps.views.paths.request(form.Query))
}

// heldBy is a session of a browser with its user; userID is "" if the session has ended.
type heldBy struct {
	session.BrowserSession
	userID string
}

// held returns the sessions of a browser, and whether the first one is current.
func (f *pageForms) held(r *http.Request, browsers *entry.Browsers) (current bool, out []heldBy, err error) {
	current, all := f.sessions.Held(r)
	signedIn, err := browsers.SignedIn(r.Context(), hashes(all))
	for _, h := range all {
		by := heldBy{BrowserSession: h}
		for _, v := range signedIn {
			if v.Session.Hash == h.Hash {
				by.userID = v.User.ID
			}
		}
		out = append(out, by)
	}
	return current, out, err
}

// hold makes a new session the current one of the browser. Sessions of other users stay, up to a
// limit. Beyond it, the least recently current session is signed out, because no page of the
// browser could do that afterwards. An earlier session of the same user is also signed out.
func (f *pageForms) hold(
	w http.ResponseWriter, r *http.Request, browsers *entry.Browsers, begun session.Minted, u storage.User,
) error {
	_, held, err := f.held(r, browsers)
	var others []session.BrowserSession
	for _, h := range held {
		switch {
		case h.userID == "", h.Hash == begun.Session.Hash:
		case h.userID != u.ID && len(others) < session.MaxHeld-1:
			others = append(others, h.BrowserSession)
		case err == nil:
			err = browsers.SignOut(r.Context(), h.Hash)
		}
	}
	if err != nil {
		return errors.Join(err, browsers.SignOut(r.Context(), begun.Session.Hash)) // no browser has it
	}
	f.sessions.SetCurrent(w, r, begun.InBrowser(), others...)
	f.follow(w, r, browsers, begun.Session.Hash, u)
	return nil
}
