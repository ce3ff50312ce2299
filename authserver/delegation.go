package authserver

import (
	"context"
	"net/http"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Delegation signs users in at identity providers (MCP 2025-03-26 authorization §2.10), and checks
// their sessions there. Providers are identified by their id. thirdparty.Delegation implements it.
type Delegation interface {
	SignIn
	Bindings
	Accounts
	Broker
	// OffersTokens reports whether resource servers may get tokens of a provider; otherwise their
	// exchange is not offered.
	OffersTokens() bool
	// Logout returns the handler of POST /callback/{provider}/logout, where a provider reports the
	// end of a session (OpenID Connect Back-Channel Logout 1.0). Nil: not offered.
	Logout() http.Handler
}

// SignIn sends users to a provider, and handles their return.
type SignIn interface {
	// Providers lists the providers in the order of the sign-in page.
	Providers() []delegation.Provider
	// Route returns the provider for a login_hint, chosen by its domain, or "".
	Route(loginHint string) string
	// Depart creates an authorization request to a provider and stores the data for its response.
	// Its error is an *oauth.Error with a text for the user.
	Depart(ctx context.Context, t delegation.Request) (delegation.AuthorizationRequest, error)
	// Return handles an authorization response, once. Its error is an *oauth.Error with a text for
	// client and user. The result contains the request as soon as it is known. On success, Return
	// stores the session; or it stores nothing, and the result has a claim to ask the user about.
	Return(ctx context.Context, r delegation.AuthorizationResponse) (delegation.Result, error)
	// Claim links the account of a claim to the user, who has confirmed that it is theirs. It works
	// once. Its error is an *oauth.Error with a text for the user.
	Claim(ctx context.Context, ticket, userID string) (delegation.Result, error)
	// Disclaim discards the account of a claim, and revokes its tokens at the provider.
	Disclaim(ctx context.Context, ticket, userID string) error
}

// Accounts lists and unlinks users' accounts at providers.
type Accounts interface {
	// Identities returns a user's linked accounts, oldest first.
	Identities(ctx context.Context, userID string) ([]storage.Identity, error)
	// Disconnect unlinks an account, identified by its connector (the id of the provider) and
	// subject, and ends the grants and sessions that depend on it. It returns storage.ErrNotFound
	// if it is not linked. It returns storage.ErrLast if the user could not sign in without it, and
	// storage.ErrSignedOut if the acting session in has ended.
	Disconnect(ctx context.Context, userID, connector, subject string, in storage.Hash) error
}

// Bindings checks the provider sessions that grants depend on (AS-218).
type Bindings interface {
	// Check asks the provider, unless it has confirmed the session within maxAge. It returns
	// storage.ErrRevoked if the session, and with it its grants, has ended. It returns an
	// *oauth.Error with temporarily_unavailable if the provider cannot be asked.
	Check(ctx context.Context, upstreamID string, maxAge time.Duration) error
	// Permit returns the scopes of a resource that the user may have, according to the provider's
	// latest data about them. withheldBy names the rules that withhold the other scopes, for
	// operators. Its errors are the same as for Check.
	Permit(ctx context.Context, upstreamID, resource string, scopes oauth.Scopes) (
		left oauth.Scopes, withheldBy string, err error)
	// ProviderGroups returns the provider groups that make a user a member of any of the groups,
	// according to the providers' latest data. It returns an *oauth.Error with
	// temporarily_unavailable if the data is unavailable.
	ProviderGroups(ctx context.Context, userID string, groups []string) ([]storage.ProviderGroup, error)
	// EndNotice returns the text, of one or two sentences, that explains to a user why the provider
	// ended a sign-in. It is empty for an unknown reason.
	EndNotice(provider, reason string) sentence.Sentence
}

// Broker returns provider tokens for resource servers (RFC 8693).
type Broker interface {
	// Token returns a provider's token for the user of an MCP token. Its error is an *oauth.Error:
	//   - invalid_target: no policy gives the resource tokens of the provider
	//   - invalid_scope: a policy does, but not with these scopes
	//   - interaction_required: the user must first grant something at the provider; the token then
	//     contains only the scopes to ask for
	//   - temporarily_unavailable
	Token(ctx context.Context, r delegation.TokenRequest) (delegation.Token, error)
}
