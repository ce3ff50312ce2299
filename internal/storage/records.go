package storage

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Hash is the SHA-256 digest that is stored for a code, token or secret.
type Hash [32]byte

// Client is a registered OAuth client.
type Client struct {
	ID           string
	SecretHash   *Hash // nil for a public client
	Name         string
	RedirectURIs []string
	GrantTypes   []string // authorization_code, refresh_token, client_credentials; none for SourcePerson
	// token_endpoint_auth_method: none, client_secret_basic, client_secret_post, private_key_jwt
	AuthMethod string
	JWKS       []byte       // public keys of private_key_jwt, a JSON Web Key Set; nil: none, or at JWKSURI
	JWKSURI    string       // where the public keys are published; "" or JWKS nil
	Scopes     oauth.Scopes // for users to read; the limit for client_credentials
	Resources  []string     // canonical; the resources a client_credentials client may name, empty: any
	Source     ClientSource
	Metadata   []byte // the remaining RFC 7591 metadata as JSON, for display and responses; may be nil
	CreatedAt  time.Time
	LastUsedAt time.Time // the last approval, redemption or refresh, to the minute; zero: never
}

// ClientSource says how a client was created. Trust in the client depends on it.
type ClientSource string

// The sources of clients.
const (
	SourceStatic  ClientSource = "static"  // created by an administrator: trusted
	SourceDynamic ClientSource = "dynamic" // registered itself (RFC 7591): unknown
	SourceManaged ClientSource = "managed" // registered itself and changed its registration (RFC 7592)
	SourceCIMD    ClientSource = "cimd"    // a client id metadata document
	SourceConfig  ClientSource = "config"  // in the configuration: trusted while it is there
	// SourcePerson is a key that a user made for a program (PE-17). It has no grant types: its
	// source defines its permissions, so a server that does not know the source grants it nothing.
	SourcePerson ClientSource = "person"
)

// Operated reports whether an administrator created the client.
func (c *Client) Operated() bool { return c.Source == SourceStatic || c.Source == SourceConfig }

// Public reports whether the client has no credential of its own (OAuth 2.1 §2.1, AS-170).
func (c *Client) Public() bool { return c.AuthMethod == "none" }

// HasSecret reports whether the client authenticates with a secret.
func (c *Client) HasSecret() bool {
	return c.AuthMethod == "client_secret_basic" || c.AuthMethod == "client_secret_post"
}

// Fleeting reports whether the store only has a copy of the client, and its metadata document or
// the configuration is authoritative.
func (c *Client) Fleeting() bool { return c.Source == SourceCIMD || c.Source == SourceConfig }

// Material returns a digest of everything the client says about itself except its secret: what
// users judge it by, and its credentials. A consent is valid for a client of one material.
func (c *Client) Material() Hash {
	text := make([]byte, 0, 1024) // enough for most clients
	text = appendList(text, c.ID, c.Name, c.AuthMethod, c.JWKSURI, string(c.JWKS), string(c.Metadata))
	text = appendList(text, sorted(c.RedirectURIs)...)
	text = appendList(text, sorted(c.GrantTypes)...)
	return sha256.Sum256(text)
}

// SelfRegistered reports whether the client registered itself, as each installation of a program
// may do.
func (c *Client) SelfRegistered() bool { return c.Source == SourceDynamic || c.Source == SourceManaged }

// ApplicationPrefix begins the key of an application that groups registrations. No client has such an ID.
const ApplicationPrefix = "app_"

// Application returns the key of the application that the client belongs to, as users see it. That
// is the client's id. Self-registered clients with the same name and redirect places share one key,
// so a program that registers again stays the same application.
func (c *Client) Application() string {
	if !c.SelfRegistered() || c.Name == "" {
		return c.ID
	}
	places := make([]string, 0, len(c.RedirectURIs))
	for _, uri := range c.RedirectURIs {
		places = append(places, oauth.RedirectPlace(uri))
	}
	slices.Sort(places)
	digest := sha256.Sum256(appendList(appendList(nil, c.Name), slices.Compact(places)...))
	return ApplicationPrefix + base64.RawURLEncoding.EncodeToString(digest[:16])
}

// appendList appends list in an unambiguous encoding.
func appendList(b []byte, list ...string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	return b
}

// sorted returns list in order. It returns list itself if it is already sorted.
func sorted(list []string) []string {
	if slices.IsSorted(list) {
		return list
	}
	return slices.Sorted(slices.Values(list))
}

// User is a local account.
type User struct {
	ID           string // "usr_" + random
	Name         string // typed at login; unique without regard to case
	PasswordHash string // argon2id in PHC form; empty: no password sign-in
	Role         Role   // "": none
	Disabled     bool
	CreatedAt    time.Time
	LastLoginAt  time.Time // zero: never
	Mail         string    // the mail address set by an administrator; "": none
	Locale       string    // the language chosen by the user (BCP 47); "": none
}

// Session is a user's sign-in in one browser.
type Session struct {
	Hash      Hash // of the cookie's random value
	UserID    string
	AuthTime  time.Time // when the user last proved their identity; zero: a provider did not say
	CreatedAt time.Time
	ExpiresAt time.Time
	// UpstreamID is the session at an upstream provider that began this one, "" if the user
	// gave a password.
	UpstreamID string
	// Methods are all authentication methods that count in this session: pwd and otp (RFC 8176),
	// and our own webauthn, recovery, link, fed, device. Nil: not known, which proves nothing.
	Methods []string
	// ProvedAt is when the user last proved their identity in this session; at first equal to
	// AuthTime.
	ProvedAt time.Time
	Agent    string    // the browser where it began, in words; "": not known
	Address  string    // the network where it began, as users see it; "": not known
	SeenAt   time.Time // the last use, to the hour
}

// Proved returns when the user last proved their identity in this session. If a provider does not
// report that time, it is when the session began, because the user came from the provider then.
func (s *Session) Proved() time.Time {
	if s.ProvedAt.IsZero() {
		return s.CreatedAt
	}
	return s.ProvedAt
}

// SeenEvery is the precision of Session.SeenAt.
const SeenEvery = time.Hour

// ID returns the id that users and forms use for a session. It is derived from the hash, so
// every session has one, and the hash cannot be derived from it.
func (s *Session) ID() string {
	digest := sha256.Sum256(append([]byte("session id "), s.Hash[:]...))
	return "ses_" + base64.RawURLEncoding.EncodeToString(digest[:16])
}

// Grant is the access to one resource that a user, or the administrator for a machine, gave one
// client. Every code and refresh token descends from a grant, and ends with it.
type Grant struct {
	ID        string
	ClientID  string
	UserID    string
	Scopes    oauth.Scopes
	Resource  string    // canonical
	AuthTime  time.Time // of the approving session; zero: not known
	CreatedAt time.Time
	ExpiresAt time.Time // absolute expiry of the grant, regardless of refreshes
	RevokedAt time.Time // zero: live
	RevokedBy RevokedBy // "": live, or revoked under an old schema
	// StatusIndex is the grant's position in the status lists. The store assigns it, unique among
	// grants whose tokens may live. 0: none, for a grant of an old schema.
	StatusIndex int64
	PausedAt    time.Time // zero: not paused
	NarrowedAt  time.Time // when the user last reduced its scopes; zero: never
	ForProgram  bool      // the grant of a key that the user made for a program
	// Methods are the methods of the approving session; the store sets them. Nil: not known.
	Methods []string
	// UpstreamID is the session at an upstream provider that the grant depends on. The store takes
	// it from the browser session that approves. "": none.
	UpstreamID string
	// TrustID is the trusted issuer entry for a grant made by an assertion; "": none. Asserted is
	// nil if the assertion contained nothing of it.
	TrustID  string
	Asserted *Asserted
}

// Resource is a protected resource (an MCP server) that tokens can be issued for.
type Resource struct {
	URI       string      `json:"uri"` // canonical
	Name      string      `json:"name"`
	Scopes    []ScopeText `json:"scopes"`
	Config    bool        `json:"config,omitempty"` // from the configuration file, not from the store
	CreatedAt time.Time   `json:"created_at,omitzero"`
	// Aliases are other URLs of the server, canonical. Each is a separate resource for tokens,
	// grants and consents, so that one client can connect as several users.
	Aliases []string `json:"aliases,omitempty"`
	// DPoP says whether tokens for it must be bound to a key of the client. An alias follows its
	// resource.
	DPoP DPoP `json:"dpop,omitempty"`
	// Upstream is the URL at which the gateway reaches the MCP server; "": it is not behind the
	// gateway, or the configuration file says where it is.
	Upstream string `json:"upstream,omitempty"`
	// ToolRules are the gateway's rules for the tools of a server with an Upstream.
	ToolRules []ToolRule `json:"tool_rules,omitempty"`
	// AliasOf is the URI of the resource that this is an alias of, in a catalogue that lists
	// aliases separately.
	AliasOf string `json:"alias_of,omitempty"`
	// Own marks a resource of the authorization server itself, such as its API. It is not an MCP
	// server that users connect: only requests that name it mean it, and no list contains it.
	Own bool `json:"-"`
}

// ToolRule says what a call of a tool needs, beyond the scopes that every call needs.
type ToolRule struct {
	Name   string   `json:"name"` // exact, or a prefix that ends in "*"
	Scopes []string `json:"scopes,omitempty"`
	Deny   bool     `json:"deny,omitempty"`   // no caller may call it
	Direct bool     `json:"direct,omitempty"` // the application may call it, but none of its sub-agents
}

// DPoP says whether tokens for a resource must be bound to a key of the client (RFC 9449).
type DPoP string

// The values of DPoP.
const (
	DPoPOptional DPoP = ""         // clients choose
	DPoPRequired DPoP = "required" // no unbound tokens are issued
)

// Server returns the URI of the MCP server in the administrator's rules and assignments.
// An alias follows its resource.
func (r Resource) Server() string {
	if r.AliasOf != "" {
		return r.AliasOf
	}
	return r.URI
}

// ScopeText is a scope of a resource with its meaning in plain words.
type ScopeText struct {
	Name        string `json:"name" yaml:"name"`
	Description string `json:"description" yaml:"description"` // completes "The application will be able to ..."
	// Default scopes are requested at the first sign-in: challenges (401) and metadata list them. A
	// request that names no known scope is granted them. Tools request other scopes when they need
	// them.
	Default bool `json:"default,omitempty" yaml:"default"`
	// EveryCall scopes are needed by every call, so they are default, and users cannot leave them
	// out. If no scope is marked so, the first default scope counts as marked.
	EveryCall bool     `json:"every_call,omitempty" yaml:"every_call"`
	Implies   []string `json:"implies,omitempty" yaml:"implies"` // scopes this one includes
	// Access is the kind of access that the scope gives; "" if the administrator did not say.
	Access    Access `json:"access,omitempty" yaml:"access"`
	Required  bool   `json:"required,omitempty" yaml:"required"`   // users cannot leave it out
	Dangerous bool   `json:"dangerous,omitempty" yaml:"dangerous"` // granted only to a user who selects it
	// ACR is the authentication context class that the scope requires (RFC 9470 §4); "": none.
	ACR string `json:"acr,omitempty" yaml:"acr"`
	// MaxAge is the longest time since the user proved their identity; 0: no limit.
	MaxAge Age `json:"max_age,omitzero" yaml:"max_age"`
}

// Age is a duration written as "5m".
type Age time.Duration

// MarshalText implements encoding.TextMarshaler.
func (a Age) MarshalText() ([]byte, error) { return []byte(time.Duration(a).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *Age) UnmarshalText(b []byte) error {
	d, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 90s, 5m or 12h", b)
	}
	*a = Age(d)
	return nil
}

// Access is a kind of access to a resource.
type Access string

// The kinds of access.
const (
	AccessRead  Access = "read"
	AccessWrite Access = "write"
	AccessAdmin Access = "admin"
)

// SigningKey is a key pair of the token signer. Private is sealed.
type SigningKey struct {
	ID          string // kid
	Algorithm   string // ES256, EdDSA, RS256
	State       KeyState
	Public      []byte // JWK, JSON
	Private     []byte // sealed PKCS #8
	CreatedAt   time.Time
	ActivatedAt time.Time // when it began to sign; zero for a next key
	RetiredAt   time.Time // zero unless retired
	ExpiresAt   time.Time // when a retired key leaves the JWKS; zero unless retired
}

// KeyState is the state of a key. It only moves forward.
type KeyState string

// The states of a signing key, in order.
const (
	KeyNext    KeyState = "next"    // published, not yet signing; one per algorithm at most
	KeyActive  KeyState = "active"  // signing; exactly one per algorithm
	KeyRetired KeyState = "retired" // verifies its signatures until it expires
)
