package flow

import (
	"context"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/ways"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// asksAlways reports whether a user is asked each time, whatever they granted before. This applies
// to scopes that require authentication, because the page for that does not name the purpose.
func asksAlways(r Request) bool {
	return policy.AuthenticationFor(r.Resource.Resource, r.Scopes) != policy.Authentication{}
}

// demand returns the authentication that a request and the granted scopes require (AS-238).
// mustSignIn checks the max_age of the request.
func (r Request) demand(granted oauth.Scopes) policy.Authentication {
	want := policy.AuthenticationFor(r.Resource.Resource, granted)
	want.ACR = oauth.StrongerACR(want.ACR, r.ACR)
	return want
}

// errUnreachable and errUntold report that this user cannot meet the requirement.
var (
	errUnreachable = sentence.NewError(oauth.UnmetAuthentication,
		"This needs a sign-in with a passkey, which does not work at this address of the server.", "no_acr_here")
	errUntold = sentence.NewError(oauth.UnmetAuthentication,
		"This needs a recent sign-in, and your provider does not say when you signed in.", "no_auth_time")
)

// lacking returns the step where the user adds the authentication that their session lacks, or nil.
// A second factor that policy requires comes first. It returns an error if no authentication can
// meet the requirement.
func (x Valid) lacking(granted oauth.Scopes, to entry.Destination, now time.Time) (Step, error) {
	want, s := x.Request.demand(granted), x.Visit.Session
	proof := policy.Proof{ACR: ways.ACR(s.Methods), At: s.AuthTime}
	switch {
	case x.Owes:
		return SignInStep{entry.StepUp{To: to}}, nil
	case !oauth.ACRSatisfies(proof.ACR, want.ACR) && !slices.Contains(x.Request.ACRs, want.ACR):
		return nil, errUnreachable
	case !oauth.ACRSatisfies(proof.ACR, want.ACR):
		to.ACR = want.ACR
		return SignInStep{entry.StepUp{To: to}}, nil
	case proof.Recent(want, now) && !s.AuthTime.Before(x.Request.ProvedAfter):
		return nil, nil
	case s.AuthTime.IsZero() && entry.Fresh(s, now): // another sign-in would not help
		return nil, errUntold
	}
	return SignInStep{entry.Reprove{To: to}}, nil
}

// lackingAtAnswer is lacking for a user who answers a page. It reads their session only if
// authentication is required; see answering.
func (f *Flow) lackingAtAnswer(ctx context.Context, x Valid, granted oauth.Scopes, yes answer, by Approver) Step {
	if x.Request.demand(granted) == (policy.Authentication{}) {
		return nil
	}
	v, err := f.Browsers.LiveVisit(ctx, by.Session, storage.VisitKey{})
	if err != nil {
		return f.refused(ctx, x.Request.Identified, err, yes, by)
	}
	if x.Visit = v; v == nil {
		return f.next(ctx, x, by.Session)
	}
	step, err := x.lacking(granted, entry.Destination{Query: yes.again}, f.Now())
	if err != nil {
		return f.refused(ctx, x.Request.Identified, err, yes, by)
	}
	return step
}
