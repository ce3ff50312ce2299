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
	// PasskeyRPIDs are the relying parties for which passkeys let people in: who has one of these, or a
	// password, may disconnect their last account at a provider.
	PasskeyRPIDs []string
	// NoLocalLogin says that a password lets no one in.
	NoLocalLogin bool
	// ProductName is the name in the User-Agent of requests to providers. Default: "mcp-authd".
	ProductName string

	Logger *slog.Logger    // default: discard
	Audit  *audit.Recorder // default: discard
	// Asked is told of each request to a provider, for metrics: how long it took, and why it came to
	// nothing. Default: nothing is.
	Asked func(connector string, took time.Duration, err error)
	Now   func() time.Time
}

// Connector configures sign-in at one provider, and the policy for people who sign in there. ID,
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
	// Key is the key that "jwt" signs with, PKCS #8 in PEM; KeyID and TeamID name it to Apple.
	Key, KeyID, TeamID string

	// Issuer is the provider's issuer identifier, for OpenID Connect.
	Issuer string
	// BaseURL is where a preset's product is installed, if it can be self-hosted
	// ("https://github.example.com").
	BaseURL string
	// Tenant is the Entra tenant, or "organizations", "common" or "consumers".
	Tenant string
	// The endpoints of plain OAuth 2.0. They take precedence over discovery.
	AuthorizationURL, TokenURL, UserInfoURL, RevocationURL, IntrospectionURL string
	// Claims names the members of the user-info response of plain OAuth 2.0, by claim: {"sub":
	// "id", "name": "login"}. Nested members are joined by dots.
	Claims map[string]string
	// Scopes are requested at every sign-in. Default: those of the type.
	Scopes oauth.Scopes
	// Parameters are added to the authorization request.
	Parameters map[string]string
	// Networks are private networks in which hosts of the provider may be. The configured host may
	// have any address; this is for the hosts that its metadata names.
	Networks []netip.Prefix

	// Domains send people to this provider whose login_hint is an address in one of them.
	Domains []string
	// Allow says who may sign in. Default: every account at the provider.
	Allow Rules
	// ScopeRules restrict scopes to some people.
	ScopeRules []ScopeRule
	// Broker says which resource servers may have tokens of the provider.
	Broker []BrokerRule

	// CheckEvery is how old the provider's last confirmation of a session may be when tokens that
	// rest on it are honoured: 5 minutes.
	CheckEvery time.Duration
	// CheckBy is how the provider is asked: "refresh" uses the refresh token each time, for
	// providers whose user info accepts an access token until it expires (Dex). Default: by
	// introspection if there is an IntrospectionURL, else by user info, and by a refresh when the
	// access token is about to expire or the provider has neither.
	CheckBy string
	// Outage is how long that confirmation counts while the provider cannot be reached: 1 hour.
	Outage time.Duration
	// Events says which security event tokens of the provider are believed. Without an audience none
	// is.
	Events Events
	// Detached: sign-ins do not end with the session at the provider, which only says who the
	// person is. For providers that offer no way to check a session.
	Detached bool
}

// Events are the security event tokens that a provider pushes (RFC 8417, RFC 8935).
type Events struct {
	// Audience is the stream's at the transmitter: a token has to be for one of these.
	Audience []string
	// Issuer is that of the tokens. Default: the issuer of the provider.
	Issuer string
	// KeysURL is where the keys are by which they are signed. Default: those of its ID tokens.
	KeysURL string
	// BearerToken is what the transmitter presents to us; "": nothing.
	BearerToken string
}

// Rules say who may sign in. Every given kind of rule must match; within one kind, one match is
// enough.
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

// ScopeRule restricts scopes to the people whom it matches. A scope that no rule names is open to
// all; one that several rules name is open to those whom any of them matches.
type ScopeRule struct {
	Resource   string // canonical; "": every resource
	Scopes     oauth.Scopes
	Groups     []string
	Expression string
}

// BrokerRule lets a resource server have tokens of the connector for the people who call it.
type BrokerRule struct {
	Resource string       // canonical
	Scopes   oauth.Scopes // the provider's scopes that it may ask for
}

// ErrConfig is wrapped by every error about the configuration.
var ErrConfig = errors.New("thirdparty: configuration")
