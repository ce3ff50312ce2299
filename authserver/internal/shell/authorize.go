package shell

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/ory/fosite"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// AuthorizeRequest is an authorization request (OAuth 2.1 §4.1.1) with the determined client,
// redirect URI and scopes.
type AuthorizeRequest struct {
	ResponseType string
	ResponseMode string // "" for the default
	Client       storage.Client
	RedirectURI  string
	Scopes       oauth.Scopes
	State        string
}

// Issue stores a grant for an approved request, and returns its code.
type Issue func(ctx context.Context) (code string, err error)

// Validate lets fosite validate a request. Its error is an *oauth.Error.
func (s *Shell) Validate(ctx context.Context, r AuthorizeRequest) error {
	_, _, err := s.validate(ctx, r)
	return err
}

// Authorize answers an approved request, and returns the parameters of the authorization response.
// Its error is an *oauth.Error, or an error of issue.
func (s *Shell) Authorize(ctx context.Context, r AuthorizeRequest, issue Issue) (url.Values, error) {
	provider, req, err := s.validate(ctx, r)
	if err != nil {
		return nil, err
	}
	resp, err := provider.NewAuthorizeResponse(ctx, req, &codeSession{issue: issue})
	if err != nil {
		return nil, translate(err)
	}
	return resp.GetParameters(), nil
}

func (s *Shell) validate(ctx context.Context, r AuthorizeRequest) (*fosite.Fosite, fosite.AuthorizeRequester, error) {
	form := url.Values{
		"client_id": {r.Client.ID}, "redirect_uri": {r.RedirectURI}, "state": {r.State},
		"response_type": {r.ResponseType}, "scope": {r.Scopes.String()},
	}
	if r.ResponseMode != "" {
		form.Set("response_mode", r.ResponseMode)
	}
	client := &clientView{Client: r.Client, redirect: r.RedirectURI, scopes: r.Scopes}
	provider := &fosite.Fosite{Store: onlyClient{client}, Config: s.config}
	req, err := provider.NewAuthorizeRequest(ctx, request(ctx, http.MethodGet, form))
	// fosite requires a state, which is optional with PKCE (OAuth 2.1 §4.1.1). It checks this last,
	// so the request that it returns with this error is complete.
	if err != nil && !errors.Is(err, fosite.ErrInvalidState) {
		return nil, nil, translate(err)
	}
	return provider, req, nil
}

// codeSession is an approved request during its fosite call.
type codeSession struct {
	session
	issue Issue
}

// codeHandler answers authorization requests with a code.
type codeHandler struct{}

// HandleAuthorizeEndpointRequest implements fosite.AuthorizeEndpointHandler.
func (codeHandler) HandleAuthorizeEndpointRequest(
	ctx context.Context, r fosite.AuthorizeRequester, resp fosite.AuthorizeResponder,
) error {
	code, err := r.GetSession().(*codeSession).issue(ctx)
	if err != nil {
		return err
	}
	resp.AddParameter("code", code)
	r.SetResponseTypeHandled("code")
	return nil
}
