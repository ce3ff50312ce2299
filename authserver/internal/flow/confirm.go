package flow

import (
	"cmp"
	"context"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/grant"
	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// ConfirmAccount is the page that names the account before the application gets a code without a
// consent page. A provider with a remembered session picks an account silently.
type ConfirmAccount struct {
	Request Request
	Visit   storage.Visit
	Form    AccountForm
}

func (ConfirmAccount) step() {}

// Question returns the permissions that the application gets.
func (c ConfirmAccount) Question() policy.Question {
	return policy.Ask(c.Request.Resource.Resource, c.Request.Scopes, c.Visit.Consented)
}

// AccountForm is the sealed content of the form on the ConfirmAccount page.
type AccountForm struct {
	// Provider is the provider of the sign-in that has just ended; the user may choose another
	// account there. "": the user was signed in before, and an approval is remembered.
	Provider string `json:"p,omitempty"`
	// Payload came back from the provider, or contains the request and the scopes to grant.
	Payload  Payload `json:"t"`
	UserID   string  `json:"u"`
	AuthTime int64   `json:"a"` // see ConsentForm
}

// mustConfirm reports whether a page has to name the account before a code that needs no other
// page. Users who signed in here have typed the account name. Clients that sign users in belong to
// the operator, and a client that returns for a tool call approval has a grant of this account.
func mustConfirm(x Valid) bool {
	return x.Visit.Session.UpstreamID != "" && !x.Request.SignIn && x.Clearance.Clearance == nil && !x.Confirmed
}

// remembered returns the form for a request that an earlier approval covers.
func (f *Flow) remembered(r Request, v storage.Visit) AccountForm {
	return AccountForm{
		Payload: Payload{
			Destination: entry.Destination{Query: r.Query},
			Approved:    f.Shown(r, policy.Ask(r.Resource.Resource, r.Scopes, v.Consented)),
			Code:        cmp.Or(r.Query.PushedCode(), grant.NewCode()),
		},
		UserID: v.User.ID, AuthTime: v.Session.AuthTime.Unix(),
	}
}

// confirmAfter shows the page to a user who approved and then signed in at a provider. If the
// approval leads to another page, that page names the account.
func (f *Flow) confirmAfter(ctx context.Context, x Examined, provider string, p Payload, by Approver) Step {
	yes := p.answer()
	v, step := f.stands(ctx, x, yes, by)
	if step != nil {
		return step
	}
	if v.Request.SignIn {
		return f.grant(ctx, v, yes, by)
	}
	if _, step := f.settle(ctx, v, yes, by); step != nil {
		return step
	}
	return ConfirmAccount{v.Request, *v.Visit, AccountForm{provider, p, by.UserID, by.AuthTime.Unix()}}
}

// answer returns the approval that the user gave before the sign-in at the provider.
func (p Payload) answer() answer {
	return answer{p.Approved, p.Choice, p.Elsewhere, p.Query.SignedIn()}
}

// Another is the verdict of a user who wants another account.
const Another = "another"

// Confirm carries out a user's decision about the account. It examines the approval again.
func (s *ProviderSignIns) Confirm(
	ctx context.Context, c AccountForm, token storage.Hash, verdict string, networks []string,
) Step {
	p := c.Payload
	consent := ConsentForm{Query: p.Query, Shown: p.Approved, UserID: c.UserID, AuthTime: c.AuthTime, Code: p.Code}
	decision := Decision{Verdict: verdict, Choice: p.Choice, Elsewhere: p.Elsewhere}
	switch {
	case c.Provider != "" && verdict == Another:
		p.Query, decision.Verdict = p.Query.Chosen(), "approve"
		again := ProviderForm{Provider: c.Provider, Purpose: delegation.PurposeSignIn, Choose: true, Payload: p}
		return s.Consent(ctx, again, decision, networks)
	case c.Provider != "":
		consent.Query = p.Query.SignedIn()
	case verdict == "approve":
		return s.Flow.confirmed(ctx, consent, token)
	}
	return s.Flow.Consent(ctx, consent, token, decision)
}

// confirmed continues a request that an earlier approval covers. If the request or the user is not
// the one on the page, it returns the step that shows the change.
func (f *Flow) confirmed(ctx context.Context, c ConsentForm, token storage.Hash) Step {
	who := f.browser(token)
	x := f.Examine(ctx, form.New(c.Query.Values()), f.fetching(f.Clients.Current, who), who)
	if v, ok := x.(Valid); ok && v.Visit != nil {
		v.Confirmed = v.Visit.User.ID == c.UserID && f.covers(c.Shown, v.Request)
		x = v
	}
	step := f.next(ctx, x, token)
	yes, ok := step.(issue)
	if !ok {
		return step
	}
	yes.Code = c.Code
	step = f.approve(ctx, Approval(yes))
	if _, ok := step.(changed); ok {
		return f.ask(ctx, c.Query, token)
	}
	return step
}
