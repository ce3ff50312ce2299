package authserver

import (
	"net/http"
	"net/url"

	"github.com/mcp-authd/mcp-authd/authserver/internal/flow"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/request"
)

// authorizePages serves authorization requests, and the forms of their pages.
type authorizePages struct {
	flow    *flow.Flow
	signIns *flow.ProviderSignIns
	pushes  *flow.Pushes
	forms   *pageForms
	steps   *steps
}

// authorize serves GET /authorize. It changes nothing, however often it is fetched, unless the
// response is a code. A pushed request is bound to the browser.
func (p *authorizePages) authorize(w http.ResponseWriter, r *http.Request) {
	query, ok := p.forms.query(w, r)
	if ok {
		request.Of(r.Context()).Sent(query, r.URL.RawQuery)
		query, ok = p.pushed(w, r, query)
	}
	if !ok {
		return
	}
	p.steps.web.ask(w, r, query)
	p.steps.write(w, r, p.flow.Authorize(r.Context(), form.New(query), p.forms.token(r)))
}

// consent serves POST /consent, the target of three forms: the consent page of a signed-in user,
// the consent page before a sign-in at a provider, and the page that names the account afterwards.
func (p *authorizePages) consent(w http.ResponseWriter, r *http.Request) {
	posted, ok := p.forms.read(w, r)
	if !ok {
		return
	}
	decision := decisionOf(posted)
	var provider flow.ProviderForm
	if err := p.forms.unseal(w, r, purposeProviderConsent, posted.Get("step"), &provider); err == nil {
		p.steps.write(w, r, p.signIns.Consent(r.Context(), provider, decision, p.forms.networks(r)))
		return
	}
	var account flow.AccountForm
	if err := p.forms.unseal(w, r, purposeConfirm, posted.Get("step"), &account); err == nil {
		step := p.signIns.Confirm(r.Context(), account, p.forms.token(r), decision.Verdict, p.forms.networks(r))
		p.steps.write(w, r, step)
		return
	}
	var consent flow.ConsentForm
	if err := p.forms.unseal(w, r, purposeConsent, posted.Get("step"), &consent); err != nil {
		p.forms.errors.stale(w, r)
		return
	}
	p.steps.write(w, r, p.flow.Consent(r.Context(), consent, p.forms.token(r), decision))
}

// decisionOf reads the decision of a consent form. Each ticked scope is a field.
func decisionOf(posted url.Values) flow.Decision {
	return flow.Decision{
		Verdict:   posted.Get("decision"),
		Elsewhere: posted.Has("elsewhere"),
		Choice:    policy.Choice{Preset: policy.Preset(posted.Get("preset")), Ticked: posted["scope"]},
	}
}
