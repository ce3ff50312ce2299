package shell

import (
	"context"
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

// Token answers a token request: it authenticates the client and calls the grant of the requested
// type. Its error is an *oauth.Error.
func (s *Shell) Token(ctx context.Context, g Grant, r grant.TokenRequest) (*oauth.TokenResponse, error) {
	x := &tokenSession{request: r}
	provider := &fosite.Fosite{Store: onlyClient{}, Config: &tokenConfig{s.config, tokenHandler{g}, func(
		ctx context.Context, _ *http.Request, _ url.Values,
	) (fosite.Client, error) {
		var err error
		if x.client, err = s.authenticate(ctx, r); err != nil {
			return nil, err
		}
		return &clientView{Client: x.client}, nil
	}}}
	form := url.Values{"grant_type": {r.GrantType}}
	if _, err := provider.NewAccessRequest(ctx, request(ctx, http.MethodPost, form), x); err != nil {
		return nil, translate(err)
	}
	return x.reply, nil
}

// tokenConfig is the configuration for one token request.
type tokenConfig struct {
	*fosite.Config
	handler      tokenHandler
	authenticate fosite.ClientAuthenticationStrategy
}

// GetTokenEndpointHandlers implements fosite.Configurator.
func (c *tokenConfig) GetTokenEndpointHandlers(context.Context) fosite.TokenEndpointHandlers {
	return fosite.TokenEndpointHandlers{c.handler}
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

// CanHandleTokenEndpointRequest implements fosite.TokenEndpointHandler. The caller of Token has
// selected the grant.
func (tokenHandler) CanHandleTokenEndpointRequest(context.Context, fosite.AccessRequester) bool {
	return true
}

// HandleTokenEndpointRequest implements fosite.TokenEndpointHandler.
func (h tokenHandler) HandleTokenEndpointRequest(ctx context.Context, r fosite.AccessRequester) (err error) {
	x := r.GetSession().(*tokenSession)
	x.reply, err = h.grant.Reply(ctx, x.client, x.request)
	return err
}

// PopulateTokenEndpointResponse implements fosite.TokenEndpointHandler. Nothing calls it: Token
// returns the grant's reply.
func (tokenHandler) PopulateTokenEndpointResponse(
	context.Context, fosite.AccessRequester, fosite.AccessResponder,
) error {
	return fosite.ErrUnknownRequest
}
