package authserver

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/internal/ways"
)

// Pages about authentication methods, below the path of the issuer.
const (
	pageAccount  = "/account"
	pageWays     = "/account/ways"
	pagePasskey  = "/account/passkey"
	pageApp      = "/account/app"
	pageRecovery = "/account/recovery"
	pagePassword = "/account/password"
)

// wayPages serves these pages.
type wayPages struct {
	browsers *entry.Browsers
	enrol    *entry.WayChanges
	prove    *provePages
	forms    *pageForms
	steps    *steps
}

func (p *wayPages) path(page string) string { return p.steps.views.paths.prefix + page }

// actAt returns the act that a page performs.
func actAt(page string) entry.Act {
	if page == pagePasskey || page == pageApp {
		return entry.Enrol
	}
	return entry.Change
}

// mine returns the user if they may change their authentication methods. If it returns false, it
// has sent a response.
func (p *wayPages) mine(w http.ResponseWriter, r *http.Request, page string) (storage.Visit, bool) {
	v, err := p.browsers.Acting(r.Context(), p.forms.token(r), actAt(page))
	if err != nil {
		if r.URL.RawQuery != "" {
			page += "?" + r.URL.RawQuery
		}
		p.prove.refused(w, r, page, err)
	}
	return v, err == nil
}

// posted is a form of a user who may change their authentication methods.
type posted struct {
	entry.WayForm
	url.Values
	by storage.Visit
}

// owner reads a form of the user that it was made for. If it returns false, it has sent a response.
func (p *wayPages) owner(w http.ResponseWriter, r *http.Request, page, purpose string) (f posted, ok bool) {
	if f.Values, ok = p.forms.open(w, r, purpose, &f.WayForm); !ok {
		return f, false
	}
	var err error
	if f.by, err = p.browsers.ActingAs(r.Context(), p.forms.token(r), f.UserID, actAt(page)); err != nil {
		p.prove.refused(w, r, page, err)
	}
	return f, err == nil
}

// list serves GET /account/ways: it redirects to the methods on the account page.
func (p *wayPages) list(w http.ResponseWriter, r *http.Request) {
	redirect(w, p.atWays())
}

func (p *wayPages) atWays() string { return p.path(pageAccount) + "#ways" }

// section returns the content about a user's authentication methods.
func (p *wayPages) section(
	w http.ResponseWriter, r *http.Request, u storage.User, identities []storage.Identity,
) (v pages.Ways, err error) {
	has, err := p.enrol.Enrolled(r.Context(), u.ID)
	if err != nil {
		return v, err
	}
	v = pages.Ways{
		Action: p.path(pageWays), Recovery: has.Factors.RecoveryCodes, Refused: refusedPasskeys(p.enrol.Ways.Site()),
		PasskeyURL: p.path(pagePasskey), AppURL: p.path(pageApp), RecoveryURL: p.path(pageRecovery),
	}
	only := has.Factors.Identities == 1 && has.Factors.Alone() == 1
	if v.Accounts, v.Connect, err = p.accounts(w, r, u, identities, only); err != nil {
		return v, err
	}
	for _, a := range has.Accepted {
		text, err := json.Marshal(a)
		if err != nil {
			return v, err
		}
		v.Accepted = append(v.Accepted, string(text))
	}
	for _, way := range has.Ways {
		sealed, err := p.forms.seal(w, r, purposeWay, entry.WayForm{UserID: u.ID, Way: way.ID})
		if err != nil {
			return v, err
		}
		v.List = append(v.List, wayView(way, sealed))
	}
	if has.Factors.Password && !p.steps.passwords.off {
		v.Password = &pages.PasswordWay{URL: p.path(pagePassword)}
		v.Password.Step, err = p.forms.seal(w, r, purposeWay, entry.WayForm{UserID: u.ID, Way: entry.PasswordWay})
	}
	if err == nil && v.Recovery > 0 && has.Factors.Alone() > 0 {
		v.RecoveryStep, err = p.forms.seal(w, r, purposeWay, entry.WayForm{UserID: u.ID, Way: entry.RecoveryWay})
	}
	return v, err
}

func wayView(way ways.Listed, sealed string) pages.Way {
	v := pages.Way{
		ID: way.ID, Name: way.Name, Step: sealed, App: way.Kind == storage.App,
		Added: way.CreatedAt, Used: way.LastUsedAt,
	}
	if !way.Works {
		v.Elsewhere = way.RPID
	}
	return v
}

// refusedPasskeys returns the reason why passkeys do not work here (PE-01), or no text.
func refusedPasskeys(s ways.Site) pages.Text {
	switch s.Missing {
	case ways.NoHostName:
		return pages.Say("ways.passkeys_address")
	case ways.PlainHTTP:
		return pages.Say("ways.passkeys_plain")
	case ways.NoDomain:
		return pages.Say("ways.passkeys_name")
	}
	return pages.Text{}
}

// recovery serves GET /account/recovery.
func (p *wayPages) recovery(w http.ResponseWriter, r *http.Request) {
	v, ok := p.mine(w, r, pageRecovery)
	if !ok {
		return
	}
	has, err := p.enrol.Enrolled(r.Context(), v.User.ID)
	var sealed string
	if err == nil {
		sealed, err = p.forms.seal(w, r, purposeRecovery, entry.WayForm{UserID: v.User.ID})
	}
	if err != nil {
		p.failed(w, r, err)
		return
	}
	p.steps.web.For(r).RecoveryCodes(w, pages.RecoveryCodes{
		Action: p.path(pageRecovery), Step: sealed, Left: has.Factors.RecoveryCodes, BackURL: p.atWays(),
		Second: p.enrol.Ways.CodeIsSecond(v.User, has.Factors),
	})
}

// newCodes serves POST /account/recovery.
func (p *wayPages) newCodes(w http.ResponseWriter, r *http.Request) {
	f, ok := p.owner(w, r, pageRecovery, purposeRecovery)
	if !ok {
		return
	}
	codes, err := p.enrol.NewCodes(r.Context(), f.by)
	if err != nil {
		p.failed(w, r, err)
		return
	}
	p.steps.web.For(r).RecoveryCodes(w, pages.RecoveryCodes{
		Codes: codes, Title: p.steps.views.issuer + " · " + f.by.User.Name, BackURL: p.atWays(),
	})
}

// password serves GET /account/password.
func (p *wayPages) password(w http.ResponseWriter, r *http.Request) {
	if p.steps.passwords.off {
		p.forms.errors.show(w, r, http.StatusForbidden, errNoPasswords)
		return
	}
	if v, ok := p.mine(w, r, pagePassword); ok {
		p.showPassword(w, r, v.User, refusedProof{status: http.StatusOK})
	}
}

func (p *wayPages) showPassword(w http.ResponseWriter, r *http.Request, u storage.User, after refusedProof) {
	sealed, err := p.forms.seal(w, r, purposePassword, entry.WayForm{UserID: u.ID})
	if err != nil {
		p.failed(w, r, err)
		return
	}
	p.steps.web.For(r).NewPassword(w, after.status, pages.NewPassword{
		Action: p.path(pagePassword), Step: sealed, Username: u.Name, Problem: after.problem,
		BackURL: p.atWays(),
	})
}

// setPassword serves POST /account/password.
func (p *wayPages) setPassword(w http.ResponseWriter, r *http.Request) {
	if p.steps.passwords.off {
		p.forms.errors.show(w, r, http.StatusForbidden, errNoPasswords)
		return
	}
	f, ok := p.owner(w, r, pagePassword, purposePassword)
	if !ok {
		return
	}
	x := &newSession{forms: p.forms, r: r}
	err := p.enrol.SetPassword(r.Context(), f.by, f.Get("password"), x.mint)
	switch {
	case errors.Is(err, entry.ErrAnotherPerson):
		p.prove.refused(w, r, pagePassword, err)
		return
	case err != nil:
		p.again(w, r, err, "", func(after refusedProof) { p.showPassword(w, r, f.by.User, after) })
		return
	}
	if err := p.forms.hold(w, r, p.browsers, x.begun, x.user); err != nil {
		p.failed(w, r, err)
		return
	}
	redirect(w, p.atWays())
}

// again shows a page again after a wrong answer.
func (p *wayPages) again(w http.ResponseWriter, r *http.Request, err error, name string, show func(refusedProof)) {
	after := refusedProof{name: name}
	if after.status, after.problem = wayProblem(err); after.status == 0 {
		p.failed(w, r, err)
		return
	}
	show(after)
}

func (p *wayPages) failed(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusServiceUnavailable
	if errors.Is(err, entry.ErrAnotherPerson) {
		status = http.StatusForbidden
	}
	p.forms.errors.show(w, r, status, err)
}

// wayProblem returns status and text about a method that could not be added; the status is 0 for an
// error that is not the user's.
func wayProblem(err error) (int, pages.Text) {
	switch {
	case errors.Is(err, errNoScript):
		return http.StatusBadRequest, pages.Say("passkey.noscript")
	case errors.Is(err, ways.ErrName):
		return http.StatusBadRequest, pages.Say("ways.unnamed")
	case errors.Is(err, ways.ErrRefused):
		return http.StatusBadRequest, pages.Say("passkey.rejected")
	case errors.Is(err, ways.ErrOver):
		return http.StatusBadRequest, pages.Say("second.late")
	case errors.Is(err, ways.ErrCode):
		return http.StatusBadRequest, pages.Say("addapp.wrong")
	case errors.Is(err, ways.ErrKnown):
		return http.StatusConflict, pages.Say("passkey.already")
	case errors.Is(err, storage.ErrFull):
		return http.StatusConflict, pages.Say("ways.full")
	case errors.Is(err, users.ErrPassword):
		return http.StatusBadRequest, pages.Say("newpassword.short")
	case errors.Is(err, users.ErrCommon):
		return http.StatusBadRequest, pages.Say("newpassword.common")
	}
	return 0, pages.Text{}
}
