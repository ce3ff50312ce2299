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

// Hash is the SHA-256 digest under which a code, token or secret is stored.
type Hash [32]byte

// Client is a registered OAuth client.
type Client struct {
	ID           string
	SecretHash   *Hash // nil for a public client
	Name         string
	RedirectURIs []string
	GrantTypes   []string // authorization_code, refresh_token, client_credentials; of SourcePerson: none
	// token_endpoint_auth_method: none, client_secret_basic, client_secret_post, private_key_jwt
	AuthMethod string
	JWKS       []byte       // public keys of private_key_jwt, a JSON Web Key Set; nil: none, or at JWKSURI
	JWKSURI    string       // where the public keys are published; "" or JWKS nil
	Scopes     oauth.Scopes // advisory for people; the limit for client_credentials
	Resources  []string     // canonical; the resources a client_credentials client may name, empty: every one
	Source     ClientSource
	Metadata   []byte // the rest of the RFC 7591 metadata as JSON, for display and echo; may be nil
	CreatedAt  time.Time
	LastUsedAt time.Time // the last approval, redemption or refresh, to the minute; zero: never
}

// ClientSource says how a client came to be; it decides how far it is trusted.
type ClientSource string

// The sources of clients.
const (
	SourceStatic  ClientSource = "static"  // created by the operator: trusted
	SourceDynamic ClientSource = "dynamic" // registered itself (RFC 7591): unknown
	SourceManaged ClientSource = "managed" // registered itself, and changed its registration (RFC 7592)
	SourceCIMD    ClientSource = "cimd"    // a client id metadata document
	SourceConfig  ClientSource = "config"  // in the configuration: trusted for as long as it stands there
	// SourcePerson is a key that a person made for a program (PE-17). It has no grant types: its
	// source says what it is good for, so that a server which does not know the source gives it nothing.
	SourcePerson ClientSource = "person"
)

// Operated reports whether the operator created the client.
func (c *Client) Operated() bool { return c.Source == SourceStatic || c.Source == SourceConfig }

// Public reports whether the client has no credential of its own (OAuth 2.1 §2.1, AS-170).
func (c *Client) Public() bool { return c.AuthMethod == "none" }

// HasSecret reports whether the client authenticates by a secret.
func (c *Client) HasSecret() bool {
	return c.AuthMethod == "client_secret_basic" || c.AuthMethod == "client_secret_post"
}

// Fleeting reports whether the store has a mere copy of the client, and its document or the
// configuration the last word.
func (c *Client) Fleeting() bool { return c.Source == SourceCIMD || c.Source == SourceConfig }

// Material is a digest of what people judge a client by, and of what it proves itself with:
// everything that it says about itself but a secret. A consent is for a client of one
// material.
func (c *Client) Material() Hash {
	text := make([]byte, 0, 1024) // of most clients it is less
	text = appendList(text, c.ID, c.Name, c.AuthMethod, c.JWKSURI, string(c.JWKS), string(c.Metadata))
	text = appendList(text, sorted(c.RedirectURIs)...)
	text = appendList(text, sorted(c.GrantTypes)...)
	return sha256.Sum256(text)
}

// SelfRegistered reports whether the client registered itself, as each installation of a program may do.
func (c *Client) SelfRegistered() bool { return c.Source == SourceDynamic || c.Source == SourceManaged }

// Application is what people take for one application: a client or, of those that registered themselves, all
// that have one name and send answers to the same places. A program that registers again is the same one.
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
	return "app_" + base64.RawURLEncoding.EncodeToString(digest[:16])
}

// appendList appends strings so that no other list looks the same.
func appendList(b []byte, list ...string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	return b
}

// sorted is list in order, itself when it is.
func sorted(list []string) []string {
	if slices.IsSorted(list) {
		return list
	}
	return slices.Sorted(slices.Values(list))
}

// User is a local account.
type User struct {
	ID           string // "usr_" + random
	Name         string // what is typed at login; unique without regard to case
	PasswordHash string // argon2id in PHC form; empty: no password sign-in
	Role         Role   // what the person may do as one of the operator's; "": nothing
	Disabled     bool
	CreatedAt    time.Time
	LastLoginAt  time.Time // zero: never
	Mail         string    // where the person gets mail, as the operator said; "": nowhere
	Locale       string    // the language that the person chose (BCP 47); "": none
}

// Session is a person's sign-in in one browser.
type Session struct {
	Hash      Hash // of the cookie's random value
	UserID    string
	AuthTime  time.Time // when the person last proved who they are; zero: a provider did not say
	CreatedAt time.Time
	ExpiresAt time.Time
	// UpstreamID is the session at an upstream provider that this one began with, "" when
	// the person gave a password.
	UpstreamID string
	// Methods are how the person proved who they are (RFC 8176: pwd, otp, and our own webauthn,
	// recovery, link, fed, device), all that count in this session. Nil: not known, which proves nothing.
	Methods []string
	// ProvedAt is when the person last proved who they are in this session: AuthTime at first.
	ProvedAt time.Time
	Agent    string    // the browser that it began in, in words; "": not known
	Address  string    // the network that it began from, as people are shown it; "": not known
	SeenAt   time.Time // the last use, to the hour
}

// Proved is when the person last proved who they are in this session. Where a provider does not say
// when they did, they came from there when the session began.
func (s *Session) Proved() time.Time {
	if s.ProvedAt.IsZero() {
		return s.CreatedAt
	}
	return s.ProvedAt
}

// SeenEvery is how exactly Session.SeenAt is kept.
const SeenEvery = time.Hour

// ID is how people and forms name a session. It follows from the hash, so that every session has
// one, and does not lead back to it.
func (s *Session) ID() string {
	digest := sha256.Sum256(append([]byte("session id "), s.Hash[:]...))
	return "ses_" + base64.RawURLEncoding.EncodeToString(digest[:16])
}

// Grant is what a person, or the operator for a machine, allowed one client for
// one resource. Every code and refresh token descends from a grant, and ends with it.
type Grant struct {
	ID        string
	ClientID  string
	UserID    string
	Scopes    oauth.Scopes
	Resource  string    // canonical
	AuthTime  time.Time // of the session that approved; zero: not known
	CreatedAt time.Time
	ExpiresAt time.Time // absolute end of the grant, whatever is refreshed
	RevokedAt time.Time // zero: live
	RevokedBy RevokedBy // "": live, or revoked under an old schema
	// StatusIndex is the place of the grant in the status lists; the store assigns it. No
	// two grants whose tokens may live have the same. 0: none, of a grant of an old schema.
	StatusIndex int64
	PausedAt    time.Time // zero: not paused
	NarrowedAt  time.Time // when the person last left it fewer scopes; zero: never
	ForProgram  bool      // of a key that the person made for a program
	// Methods are those of the session that approved; the store takes them from there. Nil: not known.
	Methods []string
	// UpstreamID is the session at an upstream provider that the grant rests on; the store
	// takes it from the browser session that approves. "": none.
	UpstreamID string
	// TrustID is the trust entry that the grant rests on, which was made by an assertion of its issuer. "":
	// none. Nil Asserted: nothing was said.
	TrustID  string
	Asserted *Asserted
}

// Resource is a protected resource (an MCP server) that tokens can be issued for.
type Resource struct {
	URI       string      `json:"uri"` // canonical
	Name      string      `json:"name"`
	Scopes    []ScopeText `json:"scopes"`
	Config    bool        `json:"config,omitempty"` // comes from the configuration file, not from the store
	CreatedAt time.Time   `json:"created_at,omitzero"`
	// Aliases are other URLs of the server, canonical. Each is a resource of its own for tokens, grants
	// and consents, so that one client can connect as several people.
	Aliases []string `json:"aliases,omitempty"`
	// DPoP says whether tokens for it have to be bound to a key of the client; an alias is like its
	// resource.
	DPoP DPoP `json:"dpop,omitempty"`
	// AliasOf is the URI of the resource that this is an alias of, where a catalogue lists them apart.
	AliasOf string `json:"alias_of,omitempty"`
	// Own is a resource of the authorization server itself, such as its API. It is no MCP server that
	// people connect: only requests that name it mean it, and it is in no list.
	Own bool `json:"-"`
}

// DPoP says whether the tokens for a resource have to be bound to a key of the client (RFC 9449).
type DPoP string

// The values of DPoP.
const (
	DPoPOptional DPoP = ""         // clients choose
	DPoPRequired DPoP = "required" // there are no others
)

// Server is the URI by which rules and assignments of the operator name the MCP server: an alias
// has those of its resource.
func (r Resource) Server() string {
	if r.AliasOf != "" {
		return r.AliasOf
	}
	return r.URI
}

// ScopeText is a scope of a resource and what it means, in plain words.
type ScopeText struct {
	Name        string `json:"name" yaml:"name"`
	Description string `json:"description" yaml:"description"` // completes "The application will be able to ..."
	// Default scopes are asked for at the first sign-in: challenges (401) and metadata name them, and a request
	// that names no known scope is granted them. Others are asked for when a tool needs them.
	Default bool `json:"default,omitempty" yaml:"default"`
	// EveryCall scopes are needed by every call, so they are default, and people cannot leave them out. If no scope
	// is marked so, the first default one is.
	EveryCall bool     `json:"every_call,omitempty" yaml:"every_call"`
	Implies   []string `json:"implies,omitempty" yaml:"implies"` // scopes this one includes
	// Access is the kind of access that it gives; "" when the operator did not say.
	Access    Access `json:"access,omitempty" yaml:"access"`
	Required  bool   `json:"required,omitempty" yaml:"required"`   // people cannot leave it out
	Dangerous bool   `json:"dangerous,omitempty" yaml:"dangerous"` // granted only to a person who picks it
	// ACR is the authentication context class that a person needs for it (RFC 9470 §4); "": none.
	ACR string `json:"acr,omitempty" yaml:"acr"`
	// MaxAge is how long ago the person may have proved who they are; 0: at any time.
	MaxAge Age `json:"max_age,omitzero" yaml:"max_age"`
}

// Age is a duration that is written as "5m".
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

// KeyState is the place of a key in its one-way life.
type KeyState string

// The states of a signing key, in order.
const (
	KeyNext    KeyState = "next"    // published, not yet signing; one per algorithm at most
	KeyActive  KeyState = "active"  // signing; exactly one per algorithm
	KeyRetired KeyState = "retired" // verifying what it signed, until it expires
)
