package authserver

import (
	"errors"
	"net/http"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/users"
)

// noticePages shows the notices about changes of an account (PE-04).
type noticePages struct {
	browsers *entry.Browsers
	notifier *notice.Notifier
	users    *users.Users
	prove    *provePages
	paths    paths
	web      *spokenPages
	forms    *pageForms
}

// noticeForm names the shown notices and their user, so that only these are marked as seen.
type noticeForm struct {
	UserID string
	IDs    []string
}

// page serves GET /account/notices.
func (p *noticePages) page(w http.ResponseWriter, r *http.Request) {
	visit, err := p.browsers.Visit(r.Context(), p.forms.token(r), storage.VisitKey{})
	switch {
	case err != nil:
		p.forms.errors.show(w, r, http.StatusServiceUnavailable, err)
		return
	case visit == nil:
		redirect(w, p.paths.login)
		return
	}
	v, err := p.section(w, r, visit.User.ID)
	if err != nil {
		p.forms.errors.show(w, r, http.StatusServiceUnavailable, err)
		return
	}
	v.BackURL = p.paths.account
	p.web.For(r).Notices(w, v)
}

// section returns a user's unseen notices.
func (p *noticePages) section(w http.ResponseWriter, r *http.Request, userID string) (v pages.Notices, err error) {
	unseen, err := p.notifier.Unseen(r.Context(), userID)
	if err != nil {
		return v, refusal.Unavailable(err)
	}
	v, form := pages.Notices{Action: p.paths.notices}, noticeForm{UserID: userID}
	for _, n := range unseen {
		v.Notices = append(v.Notices, pages.Notice{
			What:   pages.NoticeText(n.Kind),
			Name:   notice.Kind(n.Kind).Name(n.Detail),
			Detail: noticeDetail(n),
			At:     n.At,
		})
		form.IDs = append(form.IDs, n.ID)
	}
	switch from, err := p.users.Recovering(r.Context(), userID); {
	case err == nil:
		v.Recovery = &from
	case !errors.Is(err, users.ErrLink):
		return v, refusal.Unavailable(err)
	}
	v.Step, err = p.forms.seal(w, r, purposeNotices, form)
	return v, err
}

// noticeDetail returns the detail of a change.
func noticeDetail(n storage.Notice) pages.Text {
	if from, ok := notice.Moment(n.Detail); ok && n.Kind == string(notice.RecoverLinkMade) {
		return pages.When(from)
	}
	return pages.Given(n.Detail)
}

// act serves POST /account/notices. Both actions need recent authentication: otherwise a thief of a
// session could hide the notices about the theft, and stop the user from recovering the account
// (PE-04). The link in the mail stops a recovery without authentication.
func (p *noticePages) act(w http.ResponseWriter, r *http.Request) {
	var sealed noticeForm
	form, ok := p.forms.open(w, r, purposeNotices, &sealed)
	if !ok {
		return
	}
	_, err := p.browsers.ActingAs(r.Context(), p.forms.token(r), sealed.UserID, entry.Change)
	if err != nil {
		p.prove.refused(w, r, pageAccount, err)
		return
	}
	switch form.Get("act") {
	case "stop":
		err = p.users.StopRecovery(r.Context(), sealed.UserID)
	case "seen":
		err = p.notifier.See(r.Context(), sealed.UserID, sealed.IDs)
	default:
		p.forms.errors.stale(w, r)
		return
	}
	if err != nil {
		p.forms.errors.show(w, r, http.StatusServiceUnavailable, refusal.Unavailable(err))
		return
	}
	redirect(w, p.paths.account)
}
