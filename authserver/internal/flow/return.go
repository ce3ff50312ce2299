package flow

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/url"
	"slices"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Response is the response of a provider that a browser brings back.
type Response struct {
	delegation.AuthorizationResponse
	UserID string       // the user who was signed in at the start, or ""
	Token  storage.Hash // the browser's current session
}

// Returned is the outcome of a provider's response.
type Returned struct {
	Next Step
	// Over reports that the request to the provider cannot be completed again.
	Over bool
	// SignedIn reports that a session has begun for User.
	SignedIn bool
	User     storage.User
}

// Return completes a sign-in at a provider. The user who returns must be the one who left:
// otherwise another user of the browser could get their account at the provider linked to the wrong
// account here (RS-203).
func (s *ProviderSignIns) Return(ctx context.Context, r Response) Returned {
	if r.UserID != "" {
		if _, err := s.Flow.Browsers.VisitOf(ctx, r.Token, r.UserID); err != nil {
			return Returned{Next: Fail{Err: err}}
		}
	}
	result, err := s.Delegation.Return(ctx, r.AuthorizationResponse)
	err = refusal.Protocol(err)
	out := Returned{
		Over: err == nil || result.Request.Provider != "" || oauth.AsError(err).Code != oauth.TemporarilyUnavailable,
	}
	if err != nil && result.Request.Provider == "" {
		out.Next = Fail{Err: err}
		return out
	}
	var payload Payload
	if bad := json.Unmarshal(result.Request.Payload, &payload); bad != nil {
		out.Next = Fail{Err: errors.Join(err, bad)}
		return out
	}
	signedIn := err == nil && result.Claim == nil && result.Request.Purpose == delegation.PurposeSignIn
	if signedIn { // perhaps at a provider other than the account's
		err = s.Flow.Browsers.Confirm(ctx, result.User, r.Session.Hash)
	}
	switch {
	case err != nil:
		out.Next = s.failed(ctx, r, result, payload, err)
	case result.Claim != nil:
		out.Next = s.askClaim(ctx, result, payload, r.Token)
	default:
		request.Of(ctx).Note(slog.String("user", result.User.ID))
		out.SignedIn, out.User = signedIn, result.User
		out.Next = s.goOn(ctx, payload, result, r.Session)
	}
	return out
}

// failed returns the step for a failed sign-in. It sends the error to the client if the user has
// approved its redirect URI.
func (s *ProviderSignIns) failed(ctx context.Context, r Response, result delegation.Result, p Payload, err error) Step {
	provider, _ := s.Flow.Options.Provider(r.Provider)
	step := ProviderFailed{Provider: provider, To: p.Destination, Err: err}
	if result.Expected != "" {
		step.Came, step.Expected = result.Came, result.Expected
	}
	if p.Approved == nil {
		return step
	}
	to, unknown := s.Flow.identify(ctx, form.New(p.Query.Values()), s.Flow.Clients.Current)
	if unknown != nil || !s.Flow.coversClient(p.Approved, to) {
		return step
	}
	told := failedClient(step, to)
	told.Declined = r.Params.Has("error")
	return told
}

func failedClient(x ProviderFailed, to Identified) ProviderFailedClient {
	return ProviderFailedClient{
		ProviderFailed: x, Client: to, Told: forClient(oauth.AsError(x.Err), x.To.Query.Values()),
	}
}

// forClient returns a provider's error in a form for the client (RFC 6749 §4.1.2.1), whose own
// request was valid. A provider that cannot prove a new sign-in fails max_age, or else prompt=login
// (OpenID Connect Core §3.1.2.1).
func forClient(e *oauth.Error, request url.Values) *oauth.Error {
	told := *e
	understood := []oauth.Code{
		oauth.AccessDenied, oauth.ServerError, oauth.TemporarilyUnavailable, oauth.UnmetAuthentication,
	}
	switch {
	case e.Code == oauth.UnmetAuthentication && !request.Has("max_age"):
		told.Code = oauth.LoginRequired
	case !slices.Contains(understood, e.Code):
		told.Code = oauth.ServerError
	}
	return &told
}

// goOn continues to the user's destination; fresh is the user's session.
func (s *ProviderSignIns) goOn(ctx context.Context, p Payload, result delegation.Result, fresh storage.Session) Step {
	switch {
	case result.Request.Purpose == delegation.PurposeExtend:
		return s.connected(ctx, p.Connect, false)
	case result.Request.Purpose == delegation.PurposeLink:
		return SignInStep{entry.Continue{To: p.Destination}}
	case p.Query == "" && s.owes(ctx, result.User, fresh):
		return SignInStep{entry.StepUp{To: p.Destination}}
	case p.Query == "" || p.Approved == nil: // consent, if needed, follows
		return SignInStep{entry.Continue{To: p.Destination}}
	}
	return s.answer(ctx, p, result, fresh)
}

// owes reports whether the user still has to show a second factor, or whether that could not be
// determined. The session has begun. For the request of a client, Examine decides.
func (s *ProviderSignIns) owes(ctx context.Context, u storage.User, fresh storage.Session) bool {
	return entry.Sufficient(ctx, s.Flow.Factors, storage.Visit{User: u, Session: fresh}) != nil
}

// answer continues the request that the user approved before signing in. A page names the account,
// also for clients that ask each time, unless the provider returned only an identifier. The request
// is examined again; if it has changed, the user is asked again.
func (s *ProviderSignIns) answer(ctx context.Context, p Payload, result delegation.Result, fresh storage.Session) Step {
	f := s.Flow
	who := f.browser(fresh.Hash)
	x := f.Examine(ctx, form.New(p.Query.Values()), f.fetching(f.Clients.Current, who), who)
	by := Approver{Session: fresh.Hash, UserID: result.User.ID, AuthTime: result.AuthTime, Code: p.Code}
	if result.Came == "" {
		return f.approved(ctx, x, p.answer(), by)
	}
	return f.confirmAfter(ctx, x, result.Request.Provider, p, by)
}
