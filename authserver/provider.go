package authserver

import (
	"net/http"

	"github.com/mcp-authd/mcp-authd/authserver/internal/flow"
)

// providerPages sends users to providers and handles their return.
type providerPages struct {
	flow    *flow.Flow
	signIns *flow.ProviderSignIns
	forms   *pageForms
	steps   *steps
}

// depart serves POST /depart: the user signs in at a provider, or links an account there, without
// the request of an application.
func (p *providerPages) depart(w http.ResponseWriter, r *http.Request) {
	var form flow.ProviderForm
	if _, ok := p.forms.open(w, r, purposeProvider, &form); !ok {
		return
	}
	p.steps.write(w, r, p.signIns.Begin(r.Context(), form, p.forms.token(r), p.forms.networks(r)))
}

// claim serves POST /claim: the user confirms or denies that an account at a provider is theirs.
func (p *providerPages) claim(w http.ResponseWriter, r *http.Request) {
	var form flow.ClaimForm
	posted, ok := p.forms.open(w, r, purposeClaim, &form)
	switch {
	case !ok:
	case form.Session != p.forms.token(r):
		p.forms.errors.stale(w, r)
	default:
		p.steps.write(w, r, p.signIns.Claim(r.Context(), form, posted.Get("decision")))
	}
}

// connect serves /connect/{request}, the page that a token exchange sends a user to.
func (p *providerPages) connect(w http.ResponseWriter, r *http.Request) {
	step, err := p.signIns.Open(r.Context(), r.PathValue("request"), p.forms.token(r))
	if asked, ok := step.(flow.AskConnect); ok && r.Method == http.MethodPost {
		p.extend(w, r, asked)
		return
	}
	if err != nil {
		p.forms.errors.show(w, r, http.StatusServiceUnavailable, err)
		return
	}
	p.steps.write(w, r, step)
}

// extend handles the form of the page at /connect.
func (p *providerPages) extend(w http.ResponseWriter, r *http.Request, asked flow.AskConnect) {
	var form flow.ConnectForm
	posted, ok := p.forms.open(w, r, purposeConnect, &form)
	if !ok {
		return
	}
	if form != asked.Form {
		p.forms.errors.stale(w, r)
		return
	}
	step, err := p.signIns.Extend(r.Context(), asked, posted.Get("decision"), p.forms.networks(r))
	if err != nil {
		p.forms.errors.show(w, r, http.StatusBadRequest, err)
		return
	}
	p.steps.write(w, r, step)
}
