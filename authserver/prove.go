package authserver

import (
	"errors"
	"net/http"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// provePages asks signed-in users to authenticate again before they change their authentication
// methods (PE-04).
type provePages struct {
	entry *entry.SignIns
	forms *pageForms
	steps *steps
}

// refused answers a change that was not made. It redirects to the authentication page if
// authentication is missing.
func (p *provePages) refused(w http.ResponseWriter, r *http.Request, back string, err error) {
	p.refusedTo(w, r, entry.Destination{Page: back}, err)
}

// refusedTo is refused for a change that continues to a destination.
func (p *provePages) refusedTo(w http.ResponseWriter, r *http.Request, to entry.Destination, err error) {
	switch {
	case errors.Is(err, entry.ErrProve):
		p.steps.lead(w, r, p.steps.views.paths.prove, to)
	case errors.Is(err, entry.ErrMore):
		p.steps.stepUp(w, r, to)
	default:
		p.forms.errors.show(w, r, pageStatus(oauth.AsError(err)), err)
	}
}

// page serves GET /prove.
func (p *provePages) page(w http.ResponseWriter, r *http.Request) {
	to, ok := p.forms.destination(w, r)
	if !ok {
		return
	}
	p.ask(w, r, to, refusedProof{status: http.StatusOK})
}

func (p *provePages) ask(w http.ResponseWriter, r *http.Request, to entry.Destination, after refusedProof) {
	browser := p.forms.sessions.Browser(w, r)
	step, err := p.entry.Ask(r.Context(), p.forms.token(r), to, browser)
	if err != nil {
		p.forms.errors.show(w, r, http.StatusServiceUnavailable, err)
		return
	}
	if prove, ok := step.(entry.Prove); ok {
		p.show(w, r, prove, after)
		return
	}
	p.steps.writeEntry(w, r, step)
}

// prove serves POST /prove.
func (p *provePages) prove(w http.ResponseWriter, r *http.Request) {
	var f entry.ProveForm
	posted, ok := p.forms.open(w, r, purposeProve, &f)
	if !ok {
		return
	}
	x, a := &newSession{forms: p.forms, r: r}, p.forms.answer(w, r, posted)
	step, err := entry.Step(nil), errNoScript
	if a.Given() {
		step, err = p.entry.Prove(r.Context(), f, a, p.forms.token(r), x.mint)
	}
	if err == nil {
		p.steps.signedIn(w, r, x, step)
		return
	}
	after := refusedProof{unknown: unknownPasskey(err)}
	if after.status, after.problem = proofProblem(w, pages.Say("second.wrong"), err); after.status == 0 {
		err = refusal.Protocol(err)
		p.forms.errors.show(w, r, pageStatus(oauth.AsError(err)), err)
		return
	}
	p.ask(w, r, f.To, after)
}

func (p *provePages) show(w http.ResponseWriter, r *http.Request, step entry.Prove, after refusedProof) {
	headedFor(r, step.Form.To)
	request.Of(r.Context()).Showing("page that asks who it is")
	sealed, err := p.forms.seal(w, r, purposeProve, step.Form)
	paths := p.steps.views.paths
	v := pages.Prove{
		Action: paths.prove, Step: sealed, Username: step.Username, Problem: after.problem,
		Password: step.Password && !p.steps.passwords.off, App: step.App,
		BackURL: paths.destination(entry.Destination{Page: pageAccount}),
	}
	if step.Options != nil {
		v.Passkey = &pages.Passkey{
			Action: v.Action, Step: sealed, Options: string(step.Options), Unknown: after.unknown,
		}
	}
	if err == nil && !v.Password && !v.App && v.Passkey == nil {
		v.Choices, err = p.steps.reauthChoices(w, r, step)
	}
	if err != nil {
		p.forms.errors.show(w, r, http.StatusInternalServerError, err)
		return
	}
	p.steps.web.For(r).Prove(w, after.status, v)
}
