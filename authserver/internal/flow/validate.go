package flow

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/grant"
	"github.com/mcp-authd/mcp-authd/internal/dpop"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// validate checks the rest of the request. Its errors are for the client; refuse decides whether
// they are redirected without a question.
func (f *Flow) validate(ctx context.Context, to Identified, p form.Params) (Request, error) {
	r := Request{
		Identified:   to,
		MaxAge:       -1,
		Challenge:    p.Get("code_challenge"),
		Key:          p.Get("dpop_jkt"),
		ResponseMode: p.Get("response_mode"),
		Query:        form.Query(p.Values.Encode()),
		Pushed:       p.Pushed(),
	}
	if err := checkParams(p); err != nil {
		return r, err
	}
	if err := checkPushed(r); err != nil {
		return r, err
	}
	if !slices.Contains(to.Client.GrantTypes, oauth.GrantCode) {
		return r, oauth.NewError(oauth.UnauthorizedClient,
			"The client is not registered for the authorization code grant.")
	}
	requested, clearance := oauth.ParseScopes(p.Get("scope")).WithoutClearances()
	r.Clearance = clearance
	err := f.target(ctx, p, requested, &r)
	if err != nil {
		return r, err
	}
	r.Scopes = policy.Requestable(r.Resource.Resource, requested)
	// clients that are advised to request an unknown scope return again and again
	if unknown := policy.Unknown(r.Resource.Resource, requested); len(unknown) > 0 {
		request.Of(ctx).Note(slog.String("scope_unknown", form.Cut(unknown.String(), 512)))
	}
	request.Of(ctx).Note(slog.String("scope", r.Scopes.String()))
	r.Prompt = strings.Fields(p.Get("prompt"))
	r.Provider, r.LoginHint = f.Options.pickFor(p), p.Get("login_hint")
	account := p.Get(form.ParamAccount)
	r.Another, r.Chosen = account == form.AnotherAccount, account == form.ChosenAccount
	r.Told = p.Get(form.ParamClearance) == form.ToldClearance
	if age, ok, _ := p.MaxAge(); ok { // checkParams has refused everything but numbers
		r.MaxAge = age
	}
	if r.ACR, err = p.ACR(f.ACRs); err != nil {
		return r, err
	}
	return r, f.Protocol.Validate(ctx, r)
}

// target sets the resource of a request. A request without a resource and with openid identifies
// the user, if the operator allows the client to sign users in (AS-244).
func (f *Flow) target(ctx context.Context, p form.Params, requested oauth.Scopes, r *Request) (err error) {
	if !r.Client.SignsIn() || !requested.Has(oauth.OpenID) || len(p.Resources()) > 0 {
		r.Resource, err = f.Catalog.Resolve(ctx, p.Resources())
		return err
	}
	r.SignIn, r.Nonce, r.Resource.Resource = true, p.Get("nonce"), f.Identity
	if len(r.Nonce) > grant.MaxNonce {
		return sentence.NewError(oauth.InvalidRequest, "The parameter 'nonce' is too long.", "nonce_long")
	}
	return nil
}

// checkPushed refuses a request that the client must push (RFC 9126 §6, AS-242). It also refuses
// one that was pushed without authentication for a client that has credentials.
func checkPushed(r Request) error {
	switch {
	case r.Pushed == nil && r.Client.Demands().PushedRequests:
		return oauth.NewError(oauth.InvalidRequest, "This client has to push its authorization requests.")
	case r.Pushed != nil && r.Pushed.Unread && !r.Client.Public():
		return oauth.NewError(oauth.InvalidRequest, "The client did not authenticate when it pushed the request.")
	}
	return nil
}

// checkParams checks the rules that need only the parameters.
func checkParams(p form.Params) error {
	if err := p.CheckRepeated(); err != nil {
		return err
	}
	if _, _, err := p.MaxAge(); err != nil {
		return err
	}
	switch {
	case p.Get("request") != "" || p.Get("request_uri") != "":
		return oauth.NewError(oauth.InvalidRequest, "Request objects are not supported.")
	case p.Get("response_type") == "": // OAuth 2.1 §4.1.1, AS-38
		return oauth.NewError(oauth.InvalidRequest, "The parameter 'response_type' is missing.")
	case p.Get("response_type") != "code": // no implicit grant (OAuth 2.1 §10.1, AS-03)
		return oauth.NewError(oauth.UnsupportedResponseType, "Only the response type 'code' is supported.")
	case p.Get("code_challenge") == "": // OAuth 2.1 §4.1.1, §7.5.2, AS-61
		return oauth.NewError(oauth.InvalidRequest, "PKCE is required: the parameter 'code_challenge' is missing.")
	case p.Get("code_challenge_method") != oauth.S256: // an omitted method means plain
		return oauth.NewError(oauth.InvalidRequest, "The parameter 'code_challenge_method' must be S256.")
	case !oauth.ValidChallenge(p.Get("code_challenge")):
		return oauth.NewError(oauth.InvalidRequest, "The parameter 'code_challenge' is not an S256 challenge.")
	case p.Get("dpop_jkt") != "" && !dpop.IsThumbprint(p.Get("dpop_jkt")): // RFC 9449 §10
		return sentence.NewError(oauth.InvalidRequest, "The parameter 'dpop_jkt' is not the thumbprint of a key.", "key_malformed")
	}
	return nil
}
