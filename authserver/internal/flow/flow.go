// Package flow implements the browser side of the authorization server without HTTP. It reads the
// store, and returns values: the edge parses a request, calls the flow, and writes the Step that it
// returns.
//
//	examine.go   Examine: identify, validate, permit. Every step of a flow goes through it.
//	identify.go  finds the client and the redirect URI; errors are shown on a page
//	validate.go  checks the rest of the request; errors are sent to the client
//	request.go   the results of an examination
//	next.go      Next, the only function that chooses the next step
//	step.go      the steps
//	approve.go   turns the user's approval into a code
//	confirm.go   the page that names the account before a code
//	paused.go    the page about an application that the user has paused
//	shown.go     the shown contents that an approval is bound to
//	demand.go    the authentication that a request and the granted scopes require
//	visitor.go   finds the user for whom a request is examined
//	signinoptions.go  the sign-in methods
//	provider.go  starts a sign-in at a provider; return.go completes it, claim.go asks
//	             whether an account is the user's, and link.go extends a provider grant
//	limiter.go   limits how many browsers are sent to providers
//	push.go      pushed authorization requests (RFC 9126)
//	device.go    requests of devices without a browser (RFC 8628)
//	home.go      the start page
//
// Package entry signs users in and authenticates them again.
package flow

import (
	"context"
	"net/url"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/binding"
	"github.com/mcp-authd/mcp-authd/authserver/internal/catalogue"
	"github.com/mcp-authd/mcp-authd/authserver/internal/clearance"
	"github.com/mcp-authd/mcp-authd/authserver/internal/clients"
	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/allowance"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Flow answers authorization requests.
type Flow struct {
	Clients  *clients.Finder
	Catalog  *catalogue.Catalogue
	Browsers *entry.Browsers
	Options  *SignInOptions
	Factors  entry.SecondFactors // nil: no second factor is required
	Protocol Protocol
	Desk     *clearance.Desk
	Pauses   Pauses
	Bindings binding.Checker
	Identity storage.Resource // resource of clients that only identify users, see storage.Client.SignsIn
	// ACRs lists the authentication context classes that users can reach here, weakest first.
	ACRs   []string
	Limits *allowance.Limits
	Audit  *audit.Recorder
	Now    func() time.Time
}

// Protocol validates requests, issues codes and records denials.
type Protocol interface {
	// Validate checks a request in the order of the specifications. It returns an *oauth.Error if
	// the request is invalid.
	Validate(ctx context.Context, r Request) error
	// Issue stores a grant and a code for an approval, and returns the parameters of the
	// authorization response. It returns grant.ErrSignedOut if the session has ended or belongs to
	// another user, and storage.ErrChanged if the client or the earlier consent has changed.
	Issue(ctx context.Context, a Approval) (url.Values, error)
	// Deny records that the user denied the request on the page with this code. It returns
	// grant.ErrAnswered if the page was approved before; other errors are *oauth.Errors.
	Deny(ctx context.Context, code string) error
}

// Authorize runs a request through its phases. It runs them a second time with fresh data if the
// client or the consent has changed meanwhile. token is the browser's session.
func (f *Flow) Authorize(ctx context.Context, p form.Params, token storage.Hash) Step {
	step := f.authorize(ctx, p, token, f.Clients.Find)
	if _, ok := step.(changed); ok {
		step = f.authorize(ctx, p, token, f.Clients.Current)
	}
	if c, ok := step.(changed); ok {
		return Stop{c.to, refusal.Unavailable(c.err)}
	}
	return step
}

func (f *Flow) authorize(ctx context.Context, p form.Params, token storage.Hash, find finder) Step {
	who := f.browser(token)
	step := f.next(ctx, f.Examine(ctx, p, f.fetching(find, who), who), token)
	if x, ok := step.(issue); ok {
		return f.approve(ctx, Approval(x))
	}
	return step
}

// ask shows the page for a decision about a request in its current form, whatever the user approved
// before.
func (f *Flow) ask(ctx context.Context, query form.Query, token storage.Hash) Step {
	who := f.browser(token)
	x := f.Examine(ctx, form.New(query.AskingAgain().Values()), f.fetching(f.Clients.Current, who), who)
	return f.next(ctx, x, token)
}

// next calls Next and adds the data that pages need, such as the reason why a session ended.
func (f *Flow) next(ctx context.Context, x Examined, token storage.Hash) Step {
	switch r := x.(type) {
	case Unread:
		r.EndNotice = f.Browsers.EndNotice(ctx, token)
		x = r
	case Valid:
		if r.Visit == nil {
			r.EndNotice = f.Browsers.EndNotice(ctx, token)
		}
		x = r
	}
	switch step := Next(x, f.Now()).(type) {
	case ConfirmAccount:
		step.Form = f.remembered(step.Request, step.Visit)
		return step
	case AskPaused:
		step.Form = f.pausedForm(step)
		return step
	default:
		return step
	}
}
