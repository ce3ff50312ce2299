package shell

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/ory/fosite"

	"github.com/mcp-authd/mcp-authd/authserver/internal/grant"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// tokenSession is a token request during its fosite call, and its reply.
type tokenSession struct {
	session
	request grant.TokenRequest
	client  storage.Client
	reply   *oauth.TokenResponse
}

// Token answers a token request: it authenticates the client and calls the grant for the type. Its
// error is an *oauth.Error.
func (s *Shell) Token(ctx context.Context, r grant.TokenRequest) (*oauth.TokenResponse, error) {
	x := &tokenSession{request: r}
	provider := &fosite.Fosite{Store: onlyClient{}, Config: &tokenConfig{s.config, func(
		ctx context.Context, _ *http.Request, _ url.Values,
	) (fosite.Client, error) {
		var err error
		if x.client, err = s.authenticate(ctx, r); err != nil {
			return nil, err
		}
		return &clientView{Client: x.client}, nil
	}}}
	form := url.Values{"grant_type": {r.GrantType}}
	req, err := provider.NewAccessRequest(ctx, request(ctx, http.MethodPost, form), x)
	if req == nil && errors.Is(err, fosite.ErrInvalidRequest) { // fosite found no handler
		err = grant.ErrUnsupported
	}
	if err == nil {
		_, err = provider.NewAccessResponse(ctx, req)
	}
	if err != nil {
		return nil, translate(err)
	}
	return x.reply, nil
}

// tokenConfig is the configuration for one token request.
type tokenConfig struct {
	*fosite.Config
	authenticate fosite.ClientAuthenticationStrategy
}

// GetClientAuthenticationStrategy implements fosite.Configurator.
func (c *tokenConfig) GetClientAuthenticationStrategy(context.Context) fosite.ClientAuthenticationStrategy {
	return c.authenticate
}

// tokenHandler calls a grant for fosite.
type tokenHandler struct{ grant Grant }

// CanSkipClientAuth implements fosite.TokenEndpointHandler. Every grant, including refresh,
// requires client authentication (OAuth 2.1 §3.2.2, §4.3.1, AS-87, AS-101).
func (tokenHandler) CanSkipClientAuth(context.Context, fosite.AccessRequester) bool { return false }

// CanHandleTokenEndpointRequest implements fosite.TokenEndpointHandler.
func (h tokenHandler) CanHandleTokenEndpointRequest(_ context.Context, r fosite.AccessRequester) bool {
	return r.GetGrantTypes().ExactOne(h.grant.Type())
}

// HandleTokenEndpointRequest implements fosite.TokenEndpointHandler.
func (h tokenHandler) HandleTokenEndpointRequest(ctx context.Context, r fosite.AccessRequester) (err error) {
	x := r.GetSession().(*tokenSession)
	x.reply, err = h.grant.Reply(ctx, x.client, x.request)
	return err
}

// PopulateTokenEndpointResponse implements fosite.TokenEndpointHandler. It marks the request as
// answered; the reply itself is the response.
func (h tokenHandler) PopulateTokenEndpointResponse(
	ctx context.Context, r fosite.AccessRequester, resp fosite.AccessResponder,
) error {
	if !h.CanHandleTokenEndpointRequest(ctx, r) {
		return fosite.ErrUnknownRequest
	}
	reply := r.GetSession().(*tokenSession).reply
	resp.SetAccessToken(reply.AccessToken)
	resp.SetTokenType(reply.TokenType)
	return nil
}
