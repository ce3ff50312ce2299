package authserver

import (
	"cmp"
	"log/slog"
	"net/http"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/flow"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/grant"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/authserver/internal/session"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// writeProvider writes the steps of a sign-in at a provider.
func (s *steps) writeProvider(w http.ResponseWriter, r *http.Request, step flow.Step) {
	switch step := step.(type) {
	case flow.AskBeforeProvider:
		s.askBeforeProvider(w, r, step)
	case flow.AskBeforeReading:
		s.askBeforeReading(w, r, step.Request)
	case flow.ToProvider:
		s.toProvider(w, r, step)
	case flow.ProviderFailed:
		request.Of(r.Context()).Refuse(oauth.AsError(step.Err))
		s.web.For(r).Failed(w, failedStatus(w, step.Err), s.views.failed(r, step, step.Err))
	case flow.ProviderFailedClient:
		s.providerFailed(w, r, step)
	case flow.AskClaim:
		s.askClaim(w, r, step)
	case flow.AskConnect:
		s.askConnect(w, r, step)
	case flow.Connected:
		s.web.For(r).Connected(w, pages.Connected{
			Provider: providerView(step.Provider), Resource: resourceParty(step.Resource), Declined: step.Declined,
		})
	case flow.BadLink:
		s.errors.badLink(w, r, step.Err)
	case flow.NotYours:
		s.errors.notYours(w, r)
	default:
		s.errors.show(w, r, http.StatusInternalServerError, unknownStep(step))
	}
}

// askBeforeProvider shows the consent page before a sign-in at a provider. Until the user decides,
// the provider receives no data, and the server stores nothing (AS-221, AS-222).
func (s *steps) askBeforeProvider(w http.ResponseWriter, r *http.Request, step flow.AskBeforeProvider) {
	a, question := step.Request, step.Question()
	s.providerConsent(w, r, beforeProvider{
		provider: a.Provider, query: a.Query, approved: s.views.flow.Shown(a, question),
		view: pages.ProviderConsent{
			Request:   s.views.request(a, question, step.NothingChosen),
			EndNotice: pages.Told(step.EndNotice),
		},
	})
}

// askBeforeReading is askBeforeProvider for a client whose metadata document has not been read.
func (s *steps) askBeforeReading(w http.ResponseWriter, r *http.Request, u flow.Unread) {
	v := pages.ProviderConsent{Unread: true, EndNotice: pages.Told(u.EndNotice)}
	v.Client, v.Resource = clientParty(u.Client), resourceParty(u.Resource)
	s.providerConsent(w, r, beforeProvider{provider: u.Provider, query: u.Query, view: v})
}

// beforeProvider is the content of the consent page before a sign-in at a provider.
type beforeProvider struct {
	provider string
	query    form.Query
	approved *flow.Shown // nil: consent follows the sign-in
	view     pages.ProviderConsent
}

func (s *steps) providerConsent(w http.ResponseWriter, r *http.Request, d beforeProvider) {
	ways, v := s.views.flow.Options, d.view
	p, _ := ways.Provider(d.provider)
	sealed, err := s.forms.seal(w, r, purposeProviderConsent, flow.ProviderForm{
		Provider: d.provider, Purpose: delegation.PurposeSignIn, Choose: s.forms.sessions.SignedOut(r),
		Payload: flow.Payload{
			Destination: entry.Destination{Query: d.query}, Approved: d.approved,
			Code: cmp.Or(d.query.PushedCode(), grant.NewCode()),
		},
	})
	if err != nil {
		s.errors.show(w, r, http.StatusBadRequest, err)
		return
	}
	v.Action, v.Step, v.Provider = s.views.paths.consent, sealed, providerView(p)
	if ways.Several(s.passwords.offered(r.Context())) {
		v.OtherURL = s.views.paths.atProvider(d.query, form.AnyProvider)
	}
	request.Of(r.Context()).Showing("consent page before the provider")
	s.web.For(r).ProviderConsent(w, http.StatusOK, v)
}

// toProvider sets the cookie of the sign-in and sends the browser to the provider (AS-221).
func (s *steps) toProvider(w http.ResponseWriter, r *http.Request, step flow.ToProvider) {
	to := step.Request
	s.forms.sessions.EndSignedOut(w, r)
	s.forms.sessions.SetSignIn(w, r, session.SignIn{
		State: to.State, Binding: to.Binding, UserID: step.UserID, ExpiresAt: to.ExpiresAt,
	})
	redirect(w, to.URL)
}

// providerFailed sends a client the OAuth error of a failed sign-in at a provider, at the redirect
// URI that the user approved. It does so immediately if the user declined or the request is not
// from a browser; otherwise it first shows a page about the error.
func (s *steps) providerFailed(w http.ResponseWriter, r *http.Request, step flow.ProviderFailedClient) {
	e := oauth.AsError(step.Err)
	request.Of(r.Context()).Refuse(e)
	s.audit.Record(r.Context(), audit.AuthorizeRefused, slog.String("connector", step.Provider.ID),
		refusal.Attr(step.Err))
	if step.Declined && e.Code == oauth.AccessDenied || !isDocument(r) {
		s.sendToClient(w, r, step.Client, flow.ErrorResponse(step.Told))
		return
	}
	v := s.views.failed(r, step.ProviderFailed, step.Told)
	v.Client, v.ReturnURL = clientParty(step.Client.Client),
		step.Client.ResponseURL(s.views.issuer, flow.ErrorResponse(step.Told))
	v.ReturnIsCustomScheme = isCustomScheme(v.ReturnURL)
	s.web.For(r).Failed(w, failedStatus(w, step.Told), v)
}

func failedStatus(w http.ResponseWriter, err error) int {
	e := oauth.AsError(err)
	status := pageStatus(e)
	setRetryAfter(w, e, status)
	return status
}

func (s *steps) askClaim(w http.ResponseWriter, r *http.Request, step flow.AskClaim) {
	sealed, err := s.forms.seal(w, r, purposeClaim, step.Claim)
	if err != nil {
		s.errors.show(w, r, http.StatusBadRequest, err)
		return
	}
	s.web.For(r).Claim(w, pages.Claim{
		Action: s.views.paths.claim, Step: sealed, Provider: providerView(step.Provider),
		Label: step.Claim.Label, Subject: step.Claim.Subject, Username: step.Username,
	})
}

func (s *steps) askConnect(w http.ResponseWriter, r *http.Request, step flow.AskConnect) {
	sealed, err := s.forms.seal(w, r, purposeConnect, step.Form)
	var signOut string
	if err == nil {
		signOut, err = s.forms.signOut(w, r, step.Visit.User, entry.Destination{Connect: step.Form.Request})
	}
	if err != nil {
		s.errors.show(w, r, http.StatusBadRequest, err)
		return
	}
	s.web.For(r).Connect(w, pages.Connect{
		Action: s.views.paths.connect + step.Form.Request, Step: sealed,
		Resource: resourceParty(step.Resource), Provider: providerView(step.Provider),
		Scopes: step.Request.Scopes, Username: step.Visit.User.Name,
		SignOutAction: s.views.paths.logout, SignOutStep: signOut,
	})
}

// choices returns the providers on a page for a user who is not signed in: links to an
// authorization request that continues there, or forms that return to it.
func (s *steps) choices(w http.ResponseWriter, r *http.Request, to entry.Destination) ([]pages.Choice, error) {
	return s.choicesBy(w, r, to, flow.ProviderForm{})
}

// reauthChoices returns the choices for authenticating again. The provider is asked to sign the
// user in again, because its own session in the browser proves nothing (PE-04).
func (s *steps) reauthChoices(w http.ResponseWriter, r *http.Request, step entry.Prove) ([]pages.Choice, error) {
	return s.choicesBy(w, r, step.Form.To, flow.ProviderForm{Reauth: step.Reauth})
}

func (s *steps) choicesBy(
	w http.ResponseWriter, r *http.Request, to entry.Destination, form flow.ProviderForm,
) (out []pages.Choice, err error) {
	for _, p := range s.views.flow.Options.Providers() {
		c := pages.Choice{Provider: providerView(p)}
		if to.Query != "" {
			c.URL = s.views.paths.atProvider(to.Query, p.ID)
		} else {
			form.Purpose = delegation.PurposeSignIn
			form.Payload.Destination = to
			if c, err = s.choice(w, r, p, form); err != nil {
				return nil, err
			}
		}
		out = append(out, c)
	}
	return out, nil
}

// choice returns a form that sends the browser to a provider.
func (s *steps) choice(
	w http.ResponseWriter, r *http.Request, p delegation.Provider, form flow.ProviderForm,
) (pages.Choice, error) {
	form.Provider = p.ID
	form.Choose = form.Purpose == delegation.PurposeSignIn && form.Reauth == "" && s.forms.sessions.SignedOut(r)
	sealed, err := s.forms.seal(w, r, purposeProvider, form)
	return pages.Choice{Provider: providerView(p), Action: s.views.paths.depart, Step: sealed}, err
}
