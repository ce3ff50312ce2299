// Package shell is the only package that uses github.com/ory/fosite. fosite checks requests in the
// order of the specifications. Packages grant and flow decide the responses.
//
// A fosite.Fosite consists of two interfaces, so each request has its own: its store contains the
// request's one client, and its configuration authenticates that client.
package shell

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/ory/fosite"

	"github.com/mcp-authd/mcp-authd/authserver/internal/grant"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Config configures fosite.
type Config struct {
	Issuer                             string
	Secret                             []byte // of 32 bytes
	CodeTTL, AccessTTL, RefreshIdleTTL time.Duration
}

// Grant answers the token requests of one grant type.
type Grant interface {
	// Reply answers an authenticated client.
	Reply(ctx context.Context, client storage.Client, r grant.TokenRequest) (*oauth.TokenResponse, error)
}

// Authenticate returns the client of a token request.
type Authenticate func(ctx context.Context, r grant.TokenRequest) (storage.Client, error)

// Shell runs requests through fosite.
type Shell struct {
	config       *fosite.Config
	authenticate Authenticate
}

// New returns a shell. It sets every setting that fosite would otherwise set lazily, with a data
// race. JWKS fetching and its HTTP client are not set, because only fosite's own client
// authentication uses them.
func New(c Config, authenticate Authenticate) *Shell {
	return &Shell{authenticate: authenticate, config: &fosite.Config{
		AccessTokenLifespan:            c.AccessTTL,
		RefreshTokenLifespan:           c.RefreshIdleTTL,
		AuthorizeCodeLifespan:          c.CodeTTL,
		AccessTokenIssuer:              c.Issuer,
		IDTokenIssuer:                  c.Issuer,
		TokenURL:                       c.Issuer + "/token",
		ScopeStrategy:                  fosite.ExactScopeStrategy,
		AudienceMatchingStrategy:       fosite.ExactAudienceMatchingStrategy,
		ClientSecretsHasher:            noHasher{},
		EnforcePKCE:                    true,
		EnforcePKCEForPublicClients:    true,
		EnablePKCEPlainChallengeMethod: false,
		MinParameterEntropy:            1, // state is optional with PKCE; see request
		OmitRedirectScopeParam:         true,
		RefreshTokenScopes:             []string{},
		SendDebugMessagesToClients:     false,
		UseLegacyErrorFormat:           false,
		GlobalSecret:                   c.Secret,
		AuthorizeEndpointHandlers:      fosite.AuthorizeEndpointHandlers{codeHandler{}},
	}}
}

// translations maps fosite's errors to this server's.
var translations = []struct {
	fosite      error
	code        oauth.Code
	description string
}{
	{fosite.ErrUnsupportedResponseType, oauth.UnsupportedResponseType, "Only the response type 'code' is supported."},
	{fosite.ErrUnsupportedResponseMode, oauth.InvalidRequest, "Only the response mode 'query' is supported."},
	{fosite.ErrUnsupportedGrantType, oauth.UnsupportedGrantType, "The grant type is not supported."},
	{fosite.ErrInvalidClient, oauth.InvalidClient, "Client authentication failed."},
	{fosite.ErrInvalidScope, oauth.InvalidScope, "The requested scope is not valid."},
	{fosite.ErrInvalidRequest, oauth.InvalidRequest, "The request is missing a parameter or is otherwise malformed."},
}

// translate returns the *oauth.Error for an error of fosite. An *oauth.Error is returned unchanged.
func translate(err error) error {
	var ours *oauth.Error
	if errors.As(err, &ours) {
		return ours
	}
	for _, m := range translations {
		if errors.Is(err, m.fosite) {
			return oauth.NewError(m.code, m.description).Because(err)
		}
	}
	return err
}

// session implements fosite.Session without data. Types that embed it hold the data.
type session struct{}

func (session) SetExpiresAt(fosite.TokenType, time.Time)       {}
func (session) GetExpiresAt(fosite.TokenType) (none time.Time) { return none }
func (session) GetUsername() string                            { return "" }
func (session) GetSubject() string                             { return "" }
func (s session) Clone() fosite.Session                        { return s }

// clientView is a client in the form for fosite. For an authorization request, redirect is the one
// URI that was matched before, and scopes are the requestable scopes, so that fosite can only
// agree.
type clientView struct {
	storage.Client
	redirect string
	scopes   []string
}

func (c *clientView) GetID() string                    { return c.ID }
func (c *clientView) GetHashedSecret() []byte          { return nil }
func (c *clientView) GetRedirectURIs() []string        { return []string{c.redirect} }
func (c *clientView) GetGrantTypes() fosite.Arguments  { return c.GrantTypes }
func (*clientView) GetResponseTypes() fosite.Arguments { return fosite.Arguments{"code"} }
func (c *clientView) GetScopes() fosite.Arguments      { return c.scopes }
func (c *clientView) IsPublic() bool                   { return c.Public() }
func (c *clientView) GetAudience() fosite.Arguments    { return nil }
func (*clientView) GetResponseModes() []fosite.ResponseModeType {
	return []fosite.ResponseModeType{fosite.ResponseModeDefault, fosite.ResponseModeQuery}
}

// onlyClient is a fosite.Storage that contains only the client of the request, if any.
type onlyClient struct{ client *clientView }

func (s onlyClient) GetClient(context.Context, string) (fosite.Client, error) {
	if s.client == nil {
		return nil, fosite.ErrNotFound
	}
	return s.client, nil
}
func (onlyClient) ClientAssertionJWTValid(context.Context, string) error { return fosite.ErrJTIKnown }
func (onlyClient) SetClientAssertionJWT(context.Context, string, time.Time) error {
	return fosite.ErrJTIKnown
}

// noHasher refuses all secrets: package grant compares them.
type noHasher struct{}

func (noHasher) Compare(context.Context, []byte, []byte) error { return fosite.ErrInvalidClient }
func (noHasher) Hash(context.Context, []byte) ([]byte, error)  { return nil, fosite.ErrServerError }

// request returns a request in the form for fosite.
func request(ctx context.Context, method string, form url.Values) *http.Request {
	r := &http.Request{Method: method, URL: &url.URL{}, Header: http.Header{}, Form: form, PostForm: form}
	return r.WithContext(ctx)
}
