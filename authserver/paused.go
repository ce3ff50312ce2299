package authserver

import (
	"net/http"

	"github.com/mcp-authd/mcp-authd/authserver/internal/account"
	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/flow"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/request"
)

// pausedPages serves the page about a paused application that requests access (EN-02).
type pausedPages struct {
	flow     *flow.Flow
	devices  *flow.Devices
	accounts *account.Page
	prove    *provePages
	forms    *pageForms
	steps    *steps
}

// askPaused shows that the application is paused.
func (s *steps) askPaused(w http.ResponseWriter, r *http.Request, step flow.AskPaused) {
	sealed, err := s.forms.seal(w, r, purposePaused, step.Form)
	if err != nil {
		s.errors.show(w, r, http.StatusBadRequest, err)
		return
	}
	request.Of(r.Context()).Showing("page of a paused application")
	s.web.For(r).Paused(w, pages.Paused{
		Action: s.views.paths.paused, Step: sealed,
		Request:  s.views.request(step.Request, policy.Question{}, false),
		Username: step.Visit.User.Name, Since: step.Request.Paused.At, Device: step.Form.To.Device != "",
	})
}

// decide serves POST /paused.
func (p *pausedPages) decide(w http.ResponseWriter, r *http.Request) {
	var form flow.PausedForm
	posted, ok := p.forms.open(w, r, purposePaused, &form)
	if !ok {
		return
	}
	decision := flow.Decision{Verdict: posted.Get("decision")}
	switch {
	case decision.Verdict == "resume":
		p.resume(w, r, form)
	case decision.Verdict != "deny":
		p.forms.errors.show(w, r, http.StatusBadRequest, refusal.ErrIncomplete)
	case form.Device.Code != "":
		p.steps.write(w, r, p.devices.Decide(r.Context(), form.Device, decision, p.forms.token(r)))
	default:
		p.steps.write(w, r, p.flow.Consent(r.Context(), form.Consent, p.forms.token(r), decision))
	}
}

// resume ends the pause, like the account page, and continues with the request, which asks the
// user.
func (p *pausedPages) resume(w http.ResponseWriter, r *http.Request, form flow.PausedForm) {
	who := account.Person{Token: p.forms.token(r), UserID: form.UserID}
	if _, err := p.accounts.ResumePause(r.Context(), who, form.Pause); err != nil {
		p.prove.refusedTo(w, r, form.To, err)
		return
	}
	redirect(w, p.steps.views.paths.resumed(form.To))
}

// resumed returns the address to continue at after an application is resumed.
func (p paths) resumed(to entry.Destination) string {
	if to.Query != "" {
		return p.request(to.Query)
	}
	return p.destination(to)
}
