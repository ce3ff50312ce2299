package thirdparty

import (
	"errors"
	"log/slog"
	"net/netip"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Store lists the storage interfaces that this package uses.
type Store interface {
	storage.Departures
	storage.Arrivals
	storage.Identities
	storage.Upstreams
	storage.UpstreamEnds
	storage.UpstreamCustody
	storage.Handbacks
	storage.ProviderGroups
	storage.Once
}

// Config configures a Delegation. Issuer, Store, SecretKeys and Connectors are required.
type Config struct {
	// Issuer is this server's issuer identifier. The redirect URI of a connector is Issuer +
	// "/callback/" + its ID.
	Issuer string
	Store  Store
	// SecretKeys are the master keys, the primary first. Each has at least 32 bytes.
	SecretKeys [][]byte
	Connectors []Connector
	// PasskeyRPIDs are the relying parties whose passkeys can be used to sign in. A user with such
	// a passkey, or with a password, may disconnect their last account at a provider.
	PasskeyRPIDs []string
	// NoLocalLogin disables sign-in with a password.
	NoLocalLogin bool
	// ProductName is the name in the User-Agent of requests to providers. Default: "mcp-authd".
	ProductName string

	Logger *slog.Logger    // default: discard
	Audit  *audit.Recorder // default: discard
	// Asked, if set, is called after each request to a provider with its duration and error.
	Asked func(connector string, took time.Duration, err error)
	Now   func() time.Time
}

// Connector configures sign-in at one provider, and the policy for users who sign in there. ID,
// Type, ClientID and, for most types, ClientSecret are required.
type Connector struct {
	ID   string // lower case letters, digits and hyphens; part of the redirect URI, so never change it
	Type string // see Types: "oidc", "oauth2", or a preset such as "google"
	Name string // default: the preset's name
	Icon string // default: the preset's icon

	ClientID     string
	ClientSecret string
	// ClientAuth is the client authentication method at the token endpoint: "basic", "post", "jwt"
	// (Apple) or "none". Default: a method from the provider's metadata, else "basic".
	ClientAuth string
	// Key is the signing key for "jwt", PKCS #8 in PEM. KeyID and TeamID identify it to Apple.
	Key, KeyID, TeamID string

	// Issuer is the provider's issuer identifier, for OpenID Connect.
	Issuer string
	// BaseURL is the location of a preset's product, if it can be self-hosted
	// ("https://github.example.com").
	BaseURL string
	// Tenant is the Entra tenant, or "organizations", "common" or "consumers".
	Tenant string
	// The endpoints of plain OAuth 2.0. They take precedence over discovery.
	AuthorizationURL, TokenURL, UserInfoURL, RevocationURL, IntrospectionURL string
	// Claims maps claims to members of the user-info response of plain OAuth 2.0: {"sub": "id",
	// "name": "login"}. Dots select nested members.
	Claims map[string]string
	// Scopes are requested at every sign-in. Default: the scopes of the type.
	Scopes oauth.Scopes
	// Parameters are added to the authorization request.
	Parameters map[string]string
	// Networks lists private networks that may contain hosts named in the provider's metadata. The
	// configured hosts may have any address.
	Networks []netip.Prefix

	// Domains routes users to this provider if their login_hint is an address in one of these
	// domains.
	Domains []string
	// Allow restricts who may sign in. Default: every account at the provider.
	Allow Rules
	// ScopeRules restrict scopes to some users.
	ScopeRules []ScopeRule
	// Broker lists the resource servers that may get tokens of the provider.
	Broker []BrokerRule

	// CheckEvery is the maximum age of the provider's last confirmation of a session when a token
	// that depends on it is accepted. Default: 5 minutes.
	CheckEvery time.Duration
	// CheckBy is how the provider is asked. "refresh" always uses the refresh token, for providers
	// whose user info accepts an access token until it expires (Dex). Default: introspection if
	// IntrospectionURL is set, else user info. A refresh is used if the access token is about to
	// expire or the provider offers neither.
	CheckBy string
	// Outage is how long the last confirmation counts while the provider is unreachable. Default: 1
	// hour.
	Outage time.Duration
	// Events configures which security event tokens of the provider are accepted. An audience is
	// required to accept any.
	Events Events
	// Detached keeps sign-ins independent of the session at the provider, which then only
	// identifies the user. It is for providers that offer no way to check a session.
	Detached bool
}

// Events configures the security event tokens that a provider pushes (RFC 8417, RFC 8935).
type Events struct {
	// Audience lists the audiences of the stream at the transmitter. A token must name one of them.
	Audience []string
	// Issuer is the issuer of the event tokens. Default: the issuer of the provider.
	Issuer string
	// KeysURL is the URL of the keys that sign event tokens. Default: the provider's keys for ID
	// tokens.
	KeysURL string
	// BearerToken is the token that the transmitter must present, or "" for none.
	BearerToken string
}

// Rules restrict who may sign in. Every kind of rule that is set must match. Within one kind, one
// match is enough.
type Rules struct {
	Domains       []string // domains of a verified e-mail address, or Google hosted domains (hd)
	Emails        []string // verified addresses; they decide who may enter, never which user someone is
	Groups        []string // members of the claim "groups"
	Organizations []string // GitHub organisations, Slack workspaces, Discord guilds
	Teams         []string // GitHub teams, "organisation/team"
	Tenants       []string // Entra tenant ids
	// Expression is a condition over the claims, such as `claims.email_verified && "staff" in
	// claims.groups`.
	Expression string
}

// ScopeRule restricts scopes to the users that it matches. A scope without a rule is open to
// everyone. A scope with several rules is open to users who match any of them.
type ScopeRule struct {
	Resource   string // canonical; "": every resource
	Scopes     oauth.Scopes
	Groups     []string
	Expression string
}

// BrokerRule lets a resource server get the connector's tokens of its users.
type BrokerRule struct {
	Resource string       // canonical
	Scopes   oauth.Scopes // the provider's scopes that it may request
}

// ErrConfig is wrapped by every error about the configuration.
var ErrConfig = errors.New("thirdparty: configuration")
