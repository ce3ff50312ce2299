package authserver

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/ory/fosite"

	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// newShell builds fosite with our handlers only. Every setting that fosite would
// otherwise fill in lazily, and racily, is set here; JWKS fetching and its HTTP
// client stay out, because only fosite's own client authentication asks for them.
func newShell(s *Server) fosite.OAuth2Provider {
	code, refresh, machine := &codeGrant{s}, &refreshGrant{s}, &machineGrant{s}
	return fosite.NewOAuth2Provider(noStore{}, &fosite.Config{
		AccessTokenLifespan:            s.cfg.Tokens.AccessTTL,
		RefreshTokenLifespan:           s.cfg.Tokens.RefreshIdleTTL,
		AuthorizeCodeLifespan:          s.cfg.Tokens.CodeTTL,
		AccessTokenIssuer:              s.cfg.Issuer,
		IDTokenIssuer:                  s.cfg.Issuer,
		TokenURL:                       s.cfg.Issuer + "/token",
		ScopeStrategy:                  fosite.ExactScopeStrategy,
		AudienceMatchingStrategy:       fosite.ExactAudienceMatchingStrategy,
		ClientAuthenticationStrategy:   s.authenticateShell,
		ClientSecretsHasher:            noHasher{},
		EnforcePKCE:                    true,
		EnforcePKCEForPublicClients:    true,
		EnablePKCEPlainChallengeMethod: false,
		MinParameterEntropy:            1, // state is optional with PKCE; see newAuthorizeRequest
		OmitRedirectScopeParam:         true,
		RefreshTokenScopes:             []string{},
		SendDebugMessagesToClients:     false,
		UseLegacyErrorFormat:           false,
		GlobalSecret:                   s.ring.Key("fosite", 32),
		AuthorizeEndpointHandlers:      fosite.AuthorizeEndpointHandlers{code},
		TokenEndpointHandlers:          fosite.TokenEndpointHandlers{code, refresh, machine},
	})
}

// outcome hands what a grant handler decided from its Handle to its Populate call,
// which fosite makes with the same context.
type outcome struct{ reply *oauth.TokenResponse }

type outcomeKey struct{}

func withOutcome(ctx context.Context) (context.Context, *outcome) {
	o := &outcome{}
	return context.WithValue(ctx, outcomeKey{}, o), o
}

func outcomeOf(ctx context.Context) *outcome { return ctx.Value(outcomeKey{}).(*outcome) }

// shellSession satisfies fosite.Session; what it would hold travels in our own
// types. For the authorization endpoint it carries the approval.
type shellSession struct{ approval *approval }

func (*shellSession) SetExpiresAt(fosite.TokenType, time.Time)       {}
func (*shellSession) GetExpiresAt(fosite.TokenType) (none time.Time) { return none }
func (*shellSession) GetUsername() string                            { return "" }
func (*shellSession) GetSubject() string                             { return "" }
func (s *shellSession) Clone() fosite.Session                        { return &shellSession{s.approval} }

// authenticateShell is fosite's client authentication strategy.
func (s *Server) authenticateShell(ctx context.Context, r *http.Request, values url.Values) (fosite.Client, error) {
	cred, err := readCredentials(r, form.New(values))
	if err != nil {
		return nil, err
	}
	c, err := s.authenticate(ctx, cred)
	if errors.Is(err, refusal.ErrUnknownClient) && s.clients.MayFetch(cred.id) {
		// Whatever was granted to a client, the client is remembered with. One that is
		// identified by a document has nothing to register again: what ails it is the
		// grant, and the clients of this kind recover from that only.
		switch values.Get("grant_type") {
		case grantCode:
			err = errCode
		case grantRefresh:
			err = errRefresh
		}
	}
	if err != nil {
		return nil, err
	}
	return &shellClient{Client: c}, nil
}

// fromShell translates what fosite returns. Errors of our own handlers pass through
// it untouched.
func fromShell(err error) error {
	var ours *oauth.Error
	if errors.As(err, &ours) {
		return ours
	}
	for _, m := range shellErrors {
		if errors.Is(err, m.fosite) {
			return oauth.NewError(m.code, m.description).Because(err)
		}
	}
	return err
}

var shellErrors = []struct {
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

// noStore: clients are resolved before fosite is asked, or by the client
// authentication strategy; a lookup by fosite itself would be a mistake.
type noStore struct{}

// shellClientKey carries the client of an authorization request to GetClient.
type shellClientKey struct{}

func (noStore) GetClient(ctx context.Context, _ string) (fosite.Client, error) {
	if c, ok := ctx.Value(shellClientKey{}).(*shellClient); ok {
		return c, nil
	}
	return nil, fosite.ErrNotFound
}
func (noStore) ClientAssertionJWTValid(context.Context, string) error { return fosite.ErrJTIKnown }
func (noStore) SetClientAssertionJWT(context.Context, string, time.Time) error {
	return fosite.ErrJTIKnown
}

// noHasher refuses: secrets are compared in secretMatches.
type noHasher struct{}

func (noHasher) Compare(context.Context, []byte, []byte) error { return fosite.ErrInvalidClient }
func (noHasher) Hash(context.Context, []byte) ([]byte, error)  { return nil, fosite.ErrServerError }
