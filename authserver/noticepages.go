package authserver

import (
	"errors"
	"net/http"

	"github.com/mcp-authd/mcp-authd/authserver/internal/flow"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/web"
)

// noticePages show what has changed about an account (PE-04).
type noticePages struct {
	browsers *flow.Browsers
	teller   *notice.Teller
	users    *users.Users
	paths    paths
	web      *spokenPages
	forms    *pageForms
}

// noticeForm names what was shown, so that nothing is marked as seen that was not, and to whom.
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
		http.Redirect(w, r, p.paths.home, http.StatusSeeOther)
		return
	}
	unseen, err := p.teller.Unseen(r.Context(), visit.User.ID)
	if err != nil {
		p.forms.errors.show(w, r, http.StatusServiceUnavailable, refusal.Unavailable(err))
		return
	}
	v := web.Notices{Action: p.paths.notices}
	form := noticeForm{UserID: visit.User.ID}
	for _, n := range unseen {
		v.Notices = append(v.Notices, web.Notice{What: web.NoticeText(n.Kind), Detail: n.Detail, At: n.At})
		form.IDs = append(form.IDs, n.ID)
	}
	switch from, err := p.users.Recovering(r.Context(), visit.User.ID); {
	case err == nil:
		v.Recovery = &from
	case !errors.Is(err, users.ErrLink):
		p.forms.errors.show(w, r, http.StatusServiceUnavailable, refusal.Unavailable(err))
		return
	}
	if v.Step, err = p.forms.seal(w, r, purposeNotices, form); err != nil {
		p.forms.errors.show(w, r, http.StatusInternalServerError, err)
		return
	}
	p.web.For(r).Notices(w, v)
}

// act serves POST /account/notices.
func (p *noticePages) act(w http.ResponseWriter, r *http.Request) {
	var sealed noticeForm
	form, ok := p.forms.open(w, r, purposeNotices, &sealed)
	if !ok {
		return
	}
	visit, err := p.browsers.Visit(r.Context(), p.forms.token(r), storage.VisitKey{})
	switch {
	case err != nil:
	case visit == nil || visit.User.ID != sealed.UserID:
		p.forms.errors.stale(w, r)
		return
	case form.Get("act") == "stop":
		err = p.users.StopRecovery(r.Context(), sealed.UserID)
	default:
		err = p.teller.See(r.Context(), sealed.UserID, sealed.IDs)
	}
	if err != nil {
		p.forms.errors.show(w, r, http.StatusServiceUnavailable, refusal.Unavailable(err))
		return
	}
	http.Redirect(w, r, p.paths.notices, http.StatusSeeOther)
}
