package authserver

import (
	"context"
	"net/http"
	"time"

	"github.com/mcp-authd/mcp-authd/delegation"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Delegation signs people in at identity providers (MCP 2025-03-26 authorization §2.10), and
// knows what rests on their sessions there. A provider is named by its id throughout.
// thirdparty.Delegation is the usual one.
type Delegation interface {
	SignIn
	Bindings
	Accounts
	Broker
	// OffersTokens reports whether resource servers may have tokens of a provider; without it
	// token exchange is not offered.
	OffersTokens() bool
	// Logout answers POST /callback/{provider}/logout, by which a provider says that a session
	// there is over (OpenID Connect Back-Channel Logout 1.0). Nil: not offered.
	Logout() http.Handler
}

// SignIn sends people to a provider, and takes them back.
type SignIn interface {
	// Providers lists the providers in the order in which people are offered them.
	Providers() []delegation.Provider
	// Route returns the provider of the person whom a login_hint names, by its domain, or "".
	Route(loginHint string) string
	// Depart makes an authorization request to a provider and stores what its response needs. An
	// *oauth.Error says what the person is told.
	Depart(ctx context.Context, t delegation.Request) (delegation.AuthorizationRequest, error)
	// Return takes an authorization response, once. An *oauth.Error says what client and person are
	// told; the request is in the result as soon as it is known. On success the session is stored;
	// or nothing is, and the result has a claim to ask the person about.
	Return(ctx context.Context, r delegation.AuthorizationResponse) (delegation.Result, error)
	// Claim ties the account of a claim to the user, who was shown it and said that it is
	// theirs. Once; an *oauth.Error says what the person is told.
	Claim(ctx context.Context, ticket, userID string) (delegation.Result, error)
	// Disclaim gives the account of a claim up, and its tokens back to the provider.
	Disclaim(ctx context.Context, ticket, userID string) error
}

// Accounts lists and unties the accounts at providers that are tied to a user.
type Accounts interface {
	// Identities returns them, oldest first.
	Identities(ctx context.Context, userID string) ([]storage.Identity, error)
	// Disconnect unties one, named by its connector (the id of the provider) and subject,
	// and ends what rests on it. storage.ErrNotFound when there is
	// none; storage.ErrLast when the person could not sign in any more;
	// storage.ErrSignedOut when in, the session in which they do it, has ended.
	Disconnect(ctx context.Context, userID, connector, subject string, in storage.Hash) error
}

// Bindings knows whether the upstream sessions that grants rest on still stand
// (AS-218).
type Bindings interface {
	// Check asks the provider, unless it has confirmed the session within maxAge.
	// storage.ErrRevoked: the session has ended, and with it its grants. An *oauth.Error with
	// temporarily_unavailable: the provider cannot be asked now.
	Check(ctx context.Context, upstreamID string, maxAge time.Duration) error
	// Permit returns which of the scopes of a resource the person may have, by what the
	// provider last said about them, and in words for operators which rules withhold the others.
	// Errors are as with Check.
	Permit(ctx context.Context, upstreamID, resource string, scopes oauth.Scopes) (
		left oauth.Scopes, withheldBy string, err error)
	// ProviderGroups returns which provider groups make a person a member of one of the groups, by what the providers
	// last said about them. An *oauth.Error with temporarily_unavailable: the server cannot tell now.
	ProviderGroups(ctx context.Context, userID string, groups []string) ([]storage.ProviderGroup, error)
	// EndNotice tells a person why the provider ended a sign-in, in one or two sentences;
	// "" for no such reason.
	EndNotice(provider, reason string) string
}

// Broker hands tokens of providers to resource servers (RFC 8693).
type Broker interface {
	// Token returns a token of a provider for the user of an MCP token.
	//
	// An *oauth.Error says why not: invalid_target when no policy gives the resource tokens
	// of the provider, invalid_scope when not with these scopes, interaction_required when
	// the person has to grant something at the provider first, temporarily_unavailable.
	// Beside interaction_required the token has the scopes to ask for, and nothing else.
	Token(ctx context.Context, r delegation.TokenRequest) (delegation.Token, error)
}
