package thirdparty

import (
	"errors"
	"log/slog"
	"net/netip"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Store is what this package needs of a store.
type Store interface {
	storage.Departures
	storage.Arrivals
	storage.Identities
	storage.Upstreams
	storage.UpstreamEnds
	storage.UpstreamCustody
	storage.Handbacks
	storage.Once
}

// Config configures a Delegation. Issuer, Store, SecretKeys and Connectors are required.
type Config struct {
	// Issuer is our own issuer identifier; the redirect URI of a connector is
	// Issuer + "/callback/" + its id.
	Issuer string
	Store  Store
	// SecretKeys are the master keys, the primary first, each of at least 32 bytes.
	SecretKeys [][]byte
	Connectors []Connector
	// ProductName tells providers who asks, in the User-Agent. Default: "mcp-authd".
	ProductName string

	Logger *slog.Logger    // default: discard
	Audit  *audit.Recorder // default: discard
	Now    func() time.Time
}

// Connector is an upstream provider and the policy for people who come from there. ID,
// Type, ClientID and, for most types, ClientSecret are required.
type Connector struct {
	ID   string // lower case letters, digits and hyphens; part of the redirect URI: never change it
	Type string // see Types: "oidc", "oauth2", or a preset such as "google"
	Name string // default: that of the preset
	Icon string // default: that of the preset

	ClientID     string
	ClientSecret string
	// ClientAuth is how we authenticate at the token endpoint: "basic", "post", "jwt"
	// (Apple), "none". Default: what the provider's metadata offers, else "basic".
	ClientAuth string
	// Key is what "jwt" signs with, PKCS #8 in PEM; KeyID and TeamID name it to Apple.
	Key, KeyID, TeamID string

	// Issuer is the provider's issuer identifier, for OpenID Connect.
	Issuer string
	// BaseURL is where a preset's product is installed, for those that people host
	// themselves ("https://github.example.com").
	BaseURL string
	// Tenant is the Entra tenant, or "organizations", "common" or "consumers".
	Tenant string
	// The endpoints of plain OAuth 2.0. They take precedence over discovery.
	AuthorizationURL, TokenURL, UserInfoURL, RevocationURL, IntrospectionURL string
	// Claims names the members of the user-info answer of plain OAuth 2.0, by the claim
	// they stand for: {"sub": "id", "name": "login"}. Members of members are joined by dots.
	Claims map[string]string
	// Scopes are asked for at every sign-in. Default: that of the type.
	Scopes oauth.Scopes
	// Parameters are added to the authorization request.
	Parameters map[string]string
	// Networks are private networks in which the provider may be. Its configured host is
	// admitted wherever it is; this is for the hosts that its metadata names.
	Networks []netip.Prefix

	// Domains route people to this provider whose login_hint is an address there.
	Domains []string
	// Allow says who may sign in. Default: every account at the provider.
	Allow Rules
	// ScopeRules keep scopes to some people.
	ScopeRules []ScopeRule
	// Broker says which resource servers may have upstream tokens.
	Broker []BrokerRule

	// CheckEvery is how old the provider's last word about a session may be when tokens
	// that rest on it are honoured: 5 minutes.
	CheckEvery time.Duration
	// CheckBy is how the provider is asked: "refresh" uses the refresh token each time, for
	// providers whose user info believes an access token until it expires (Dex). Default:
	// by introspection if there is an IntrospectionURL, else by user info, and by a refresh
	// when the access token is about to expire or neither is to be had.
	CheckBy string
	// Outage is how long that word holds while the provider cannot be reached: 1 hour.
	Outage time.Duration
	// Detached: sign-ins do not end with the session at the provider; it only says who
	// the person is. For providers that give nothing to check by.
	Detached bool
}

// Rules say who may sign in. Every kind of rule that is given must hold; within one
// kind, one match is enough.
type Rules struct {
	Domains       []string // of a verified e-mail address, or the hosted domain (hd) of Google
	Emails        []string // verified addresses: who may enter, never who a person is
	Groups        []string // members of the claim "groups"
	Organizations []string // GitHub organisations, Slack workspaces, Discord guilds
	Teams         []string // GitHub teams, "organisation/team"
	Tenants       []string // Entra tenant ids
	// Expression is a condition over the claims, as in `claims.email_verified &&
	// "staff" in claims.groups`.
	Expression string
}

// ScopeRule keeps scopes to the people for whom it holds. A scope that no rule names is
// open to all; one that several rules name, to those for whom any of them holds.
type ScopeRule struct {
	Resource   string // canonical; "": every resource
	Scopes     oauth.Scopes
	Groups     []string
	Expression string
}

// BrokerRule lets a resource server have tokens of the connector for the people who call it.
type BrokerRule struct {
	Resource string       // canonical
	Scopes   oauth.Scopes // the upstream scopes that it may ask for
}

// ErrConfig is wrapped by every error about the configuration.
var ErrConfig = errors.New("thirdparty: configuration")
