package flow

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"

	"github.com/mcp-authd/mcp-authd/authserver/internal/connect"
	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// ProviderSignIns signs users in at providers, with or without the request of a client.
type ProviderSignIns struct {
	Flow       *Flow
	Delegation Delegation
	Links      *connect.Links
	Notices    *notice.Notifier
	limits     *signInLimiter
}

// Delegation signs users in at providers. authserver.Delegation documents the contract.
type Delegation interface {
	Listing
	Depart(ctx context.Context, r delegation.Request) (delegation.AuthorizationRequest, error)
	Return(ctx context.Context, r delegation.AuthorizationResponse) (delegation.Result, error)
	Claim(ctx context.Context, ticket, userID string) (delegation.Result, error)
	Disclaim(ctx context.Context, ticket, userID string) error
	Identities(ctx context.Context, userID string) ([]storage.Identity, error)
}

// NewProviderSignIns returns the provider sign-ins of a flow.
func NewProviderSignIns(f *Flow, d Delegation, l *connect.Links, n *notice.Notifier) *ProviderSignIns {
	return &ProviderSignIns{Flow: f, Delegation: d, Links: l, Notices: n, limits: newSignInLimiter(f.Limits)}
}

// ProviderForm is the content of the forms that send a browser to a provider, sealed and bound to
// the browser.
type ProviderForm struct {
	Provider string             `json:"p"`
	Purpose  delegation.Purpose `json:"e"`
	UserID   string             `json:"u,omitempty"` // the signed-in user, or ""
	// Reauth reports whether the user has to authenticate again.
	Reauth delegation.Reauthentication `json:"n,omitempty"`
	// Choose asks the provider to let the user choose an account. After a sign-out, the provider's
	// session must not sign the same user in again without a question.
	Choose  bool    `json:"c,omitempty"`
	Payload Payload `json:"t"`
}

// Payload is the destination that comes back with the browser.
type Payload struct {
	entry.Destination
	// Approved is what the user approved of the request; nil if the approval comes after the
	// sign-in.
	Approved *Shown        `json:"a,omitempty"`
	Choice   policy.Choice `json:"s,omitzero"`
	// Elsewhere is Decision.Elsewhere.
	Elsewhere bool `json:"w,omitempty"`
	// Code is the code of the approved page, as in ConsentForm.
	Code string `json:"k,omitempty"`
}

// Begin sends a user's browser to a provider without the request of an application. The user signs
// in there, or links an account.
func (s *ProviderSignIns) Begin(ctx context.Context, p ProviderForm, token storage.Hash, networks []string) Step {
	if p.UserID != "" {
		if err := s.mayTie(ctx, token, p.UserID); err != nil {
			return unproved(p.Payload.Destination, err)
		}
	}
	p.Payload.Approved = nil
	return s.begin(ctx, p, networks, delegation.Request{Reauth: p.Reauth})
}

// unproved returns the step for a user who may not link an account yet: the missing authentication,
// and then to.
func unproved(to entry.Destination, err error) Step {
	switch {
	case errors.Is(err, entry.ErrProve):
		return SignInStep{entry.Reprove{To: to}}
	case errors.Is(err, entry.ErrMore):
		return SignInStep{entry.StepUp{To: to}}
	}
	return Fail{Err: err}
}

// Consent carries out the decision of a user who signs in at a provider afterwards. It examines the
// request again, as after the consent page. Nothing is stored before this (AS-220, AS-222, SP-01).
func (s *ProviderSignIns) Consent(ctx context.Context, p ProviderForm, d Decision, networks []string) Step {
	query := p.Payload.Query
	x := s.Flow.Examine(ctx, form.New(query.Values()), s.Flow.fetching(s.Flow.Clients.Current, noPerson), noPerson)
	switch r := x.(type) {
	case Unread:
		r.Provider, p.Payload.Approved = p.Provider, nil
		return s.consentUnread(ctx, p, r, d.Verdict, networks)
	case Invalid:
		return Stop{r.To, r.Err}
	case Valid:
		r.Request.Provider = p.Provider
		p.Payload.Choice, p.Payload.Elsewhere = d.Choice, d.Elsewhere
		return s.consent(ctx, p, r, d.Verdict, networks)
	}
	return Next(x, s.Flow.Now())
}

func (s *ProviderSignIns) consent(
	ctx context.Context, p ProviderForm, x Valid, verdict string, networks []string,
) Step {
	r, approved := x.Request, p.Payload.Approved
	switch {
	case !s.Flow.coversClient(approved, r.Identified):
		return Next(x, s.Flow.Now()) // the client has changed: show it again
	case verdict == "deny":
		return s.Flow.deny(ctx, r, p.Payload.Code)
	case verdict != "approve":
		return incomplete
	case !s.Flow.covers(approved, r):
		return Next(x, s.Flow.Now()) // more than the page showed: show it again
	}
	switch _, err := approved.granted(r.Resource.Resource, p.Payload.Choice); {
	case errors.Is(err, policy.ErrPreset):
		return incomplete
	case err != nil:
		return nothingChosen(Next(x, s.Flow.Now()))
	}
	if _, ok := s.Flow.Options.Provider(p.Provider); !ok {
		return RespondError{r.Identified, errNotOffered}
	}
	step := s.begin(ctx, p, networks, s.signIn(p, r.Client))
	if failed, ok := step.(ProviderFailed); ok {
		return failedClient(failed, r.Identified)
	}
	return step
}

func (s *ProviderSignIns) consentUnread(
	ctx context.Context, p ProviderForm, x Unread, verdict string, networks []string,
) Step {
	switch verdict {
	case "approve":
		return s.begin(ctx, p, networks, s.signIn(p, x.Client))
	case "deny":
		s.Flow.Audit.Record(ctx, audit.ConsentDenied,
			slog.String("client_id", x.Client.ID), slog.String("resource", x.Resource.URI))
		return Fail{Err: sentence.NewError(oauth.AccessDenied,
			"You did not continue, so nothing was approved.", "not_continued")}
	}
	return incomplete
}

// signIn returns the sign-in that a client's request requires.
func (s *ProviderSignIns) signIn(p ProviderForm, c storage.Client) delegation.Request {
	query := p.Payload.Query
	values, prompts := query.Values(), query.Prompts()
	r := delegation.Request{
		ClientID:  c.ID,
		LoginHint: values.Get("login_hint"),
		Choose:    slices.Contains(prompts, "select_account"),
	}
	if values.Has("max_age") || slices.Contains(prompts, "login") {
		r.Reauth = delegation.ReauthProved
	}
	return r
}

var errNotOffered = sentence.NewError(oauth.InvalidRequest, "This way to sign in is not offered any more.", "way_gone")

// begin prepares the request to the provider. r contains the values that are not in p.
func (s *ProviderSignIns) begin(ctx context.Context, p ProviderForm, networks []string, r delegation.Request) Step {
	if err := s.limits.take(ctx, networks, p.UserID != ""); err != nil {
		return Fail{Err: err} // shown to the user, who can send the form again
	}
	provider, ok := s.Flow.Options.Provider(p.Provider)
	if !ok {
		return Fail{Err: errNotOffered}
	}
	request.Of(ctx).Note(slog.String("connector", p.Provider), audit.Purpose(string(p.Purpose)))
	r.Provider, r.Purpose, r.UserID, r.Choose = p.Provider, p.Purpose, p.UserID, r.Choose || p.Choose
	var out delegation.AuthorizationRequest
	var err error
	if r.Payload, err = json.Marshal(p.Payload); err == nil {
		out, err = s.Delegation.Depart(ctx, r)
	}
	if err != nil {
		return ProviderFailed{Provider: provider, To: p.Payload.Destination, Err: refusal.Protocol(err)}
	}
	return ToProvider{provider, p.UserID, out}
}
