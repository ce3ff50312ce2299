// Package flow is the half of the authorization server that stands behind the browser, as
// values. It knows the store and no HTTP: the edge parses a request, calls the flow, and
// writes the Step that it gets.
//
//	examine.go   Examine: identify, validate, permit. Every step of a flow goes through it.
//	identify.go  who asks, and where the answer goes; can only fail to a page
//	validate.go  the rest of the request; its failures are for the client
//	request.go   what an examination has found out
//	next.go      Next, the only function that chooses the next step
//	step.go      the steps
//	approve.go   what a person has approved becomes a code
//	confirm.go   the page that names the account before a code
//	paused.go    the page about an application that the person has paused
//	shown.go     what an approval is bound to
//	demand.go    what a request, and what is granted, demands of the person's proof
//	visitor.go   for whom a request is examined
//	signinoptions.go  where people may sign in
//	provider.go  a sign-in at a provider begins; return.go ends it, claim.go asks whose an
//	             account is, and link.go lets a resource server have more of one
//	limiter.go   how many browsers may be sent to providers
//	push.go      the request that a client has pushed (RFC 9126)
//	device.go    the request of a device without a browser (RFC 8628)
//	home.go      the start page
//
// Package entry has people sign in and prove who they are.
package flow

import (
	"context"
	"net/url"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/binding"
	"github.com/mcp-authd/mcp-authd/authserver/internal/catalogue"
	"github.com/mcp-authd/mcp-authd/authserver/internal/clearance"
	"github.com/mcp-authd/mcp-authd/authserver/internal/clients"
	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/allowance"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Flow answers authorization requests.
type Flow struct {
	Clients  *clients.Finder
	Catalog  *catalogue.Catalogue
	Browsers *entry.Browsers
	Options  *SignInOptions
	Factors  entry.SecondFactors // nil: a second factor is required of no person
	Protocol Protocol
	Desk     *clearance.Desk
	Pauses   Pauses
	Bindings binding.Checker
	Identity storage.Resource // what clients that want to know who people are get, see storage.Client.SignsIn
	// ACRs are the authentication context classes that people can reach here, the weakest first.
	ACRs   []string
	Limits *allowance.Limits
	Audit  *audit.Recorder
	Now    func() time.Time
}

// Protocol is the protocol shell.
type Protocol interface {
	// Validate checks a request in the order of the specifications. An *oauth.Error says what
	// is wrong with it.
	Validate(ctx context.Context, r Request) error
	// Issue makes an approval a grant and its code, and returns the parameters of the
	// authorization response. grant.ErrSignedOut when the session has ended or is another person's;
	// storage.ErrChanged when the client or the earlier consent is no longer the same.
	Issue(ctx context.Context, a Approval) (url.Values, error)
	// Deny keeps that the page with a code was answered by a no. grant.ErrAnswered when it was
	// approved; an *oauth.Error.
	Deny(ctx context.Context, code string) error
}

// Authorize runs a request through its phases, again when the client or the consent that it
// was judged by turns out to be of a moment ago. token is the browser's session.
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

// ask shows the page on which people decide about a request, as it is now, whatever
// they have approved before.
func (f *Flow) ask(ctx context.Context, query form.Query, token storage.Hash) Step {
	who := f.browser(token)
	x := f.Examine(ctx, form.New(query.AskingAgain().Values()), f.fetching(f.Clients.Current, who), who)
	return f.next(ctx, x, token)
}

// next is Next, with a word for a person who is no longer signed in.
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
