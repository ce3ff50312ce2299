package authserver

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/alexedwards/argon2id"
	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/attempt"
	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/flow"
	"github.com/mcp-authd/mcp-authd/internal/access"
	"github.com/mcp-authd/mcp-authd/internal/dpop"
	"github.com/mcp-authd/mcp-authd/internal/stopping"
	"github.com/mcp-authd/mcp-authd/metadata"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/web"
)

// Store is what the authorization server needs of a store: every role that a
// request, a page or the housekeeping uses. storage/sqlite and storage/postgres
// satisfy it.
type Store interface {
	storage.Clients
	storage.Users
	storage.Accounts
	storage.Locales
	storage.Roles
	storage.Groups
	storage.AccessRules
	storage.Setup
	storage.Sessions
	storage.UserSessions
	storage.Approvals
	storage.Devices
	storage.RemoteSignIns
	storage.PushedRequests
	storage.Clearances
	storage.Audiences
	storage.Redemptions
	storage.Revocations
	storage.Cuts
	storage.Lookups
	storage.Connections
	storage.Pauses
	storage.ProgramKeys
	storage.Nodes
	storage.AssertionGrants
	storage.Stops
	storage.Resources
	storage.Keys
	storage.KeyCustody
	storage.SharedKeys
	storage.Failures
	storage.Once
	storage.Ways
	storage.WayEnds
	storage.RecoveryCodes
	storage.WayCustody
	storage.Leases
	storage.Housekeeping
	storage.Clock
	// Grant is that of storage.Grants.
	Grant(ctx context.Context, id string) (storage.Grant, error)
	// Upstream is that of storage.Upstreams.
	Upstream(ctx context.Context, id string) (storage.Upstream, error)
	// SessionEnd is that of storage.UpstreamEnds.
	SessionEnd(ctx context.Context, session storage.Hash, now time.Time) (connector, reason string, err error)
	storage.Events
	storage.Notices
	storage.OneTimeLinks
	storage.LinkStops
}

// Clients finds a client by its id: storage.ErrNotFound when it is unknown, storage.ErrRevoked when
// it was deleted. dcr.Registry is the usual one.
//
// A client that the store has another form of is not approved, unless its Source says that
// the store has a copy only: storage.SourceConfig for one that the program itself brings.
type Clients interface {
	Client(ctx context.Context, id string) (storage.Client, error)
}

// CurrentClients are Clients that cache, and can also read past their cache.
type CurrentClients interface {
	// Current is Client without the cache.
	Current(ctx context.Context, id string) (storage.Client, error)
}

// Documents reads client id metadata documents. dcr.Registry is the usual one.
type Documents interface {
	// Fetch reads the document at id, again if need be. It is called on behalf of people who have
	// signed in. storage.ErrNotFound when the document is invalid.
	Fetch(ctx context.Context, id string) (storage.Client, error)
	// Vouched reports whether the operator knows the client.
	Vouched(c storage.Client) bool
}

// ClientKeys finds the public keys that may verify an assertion of a client whose header
// names kid, or names none. dcr.Registry is the usual one.
type ClientKeys interface {
	ClientKeys(ctx context.Context, c storage.Client, kid string) ([]jose.JSONWebKey, error)
}

// Registry registers clients and finds them. dcr.Registry is the usual one.
type Registry interface {
	Clients
	Documents
	ClientKeys
	// Handler answers /register (RFC 7591) and /register/{client} (RFC 7592).
	http.Handler
	// OffersRegistration reports whether clients may register; without it there is no /register.
	OffersRegistration() bool
	// OffersDocuments reports whether client ids may be URLs of metadata documents; without
	// it such clients are unknown.
	OffersDocuments() bool
	// Attach is called once, by New, with what a registry needs from the server: its issuer, the
	// scopes that can be granted and those granted by default, and the address that a request comes
	// from.
	Attach(issuer string, known, standard func(context.Context) oauth.Scopes, clientAddr func(*http.Request) netip.Addr)
}

// Config says what an authorization server is. Issuer, Store and SecretKeys are
// required; every other zero value is a safe default.
type Config struct {
	// Issuer is the issuer identifier: an https URL (or http on loopback) without query, fragment
	// and trailing slash. It is published and compared as exactly this string and never derived
	// from a request.
	Issuer string
	Store  Store
	// Allowances counts what limits allow for all replicas together; Store can. Default: each
	// replica counts alone.
	Allowances storage.Allowances
	// SecretKeys are the master keys, the primary first, each of at least 32 bytes.
	SecretKeys [][]byte

	// Resources are the protected resources known from the start, with their aliases; more may
	// be in the store. The first of all is the default.
	Resources []storage.Resource
	// AccessRules limit the scopes that accounts may use, in addition to the rules in the store. A rule here overrides
	// a stored one with the same resource and subject: with neither UserID nor Group it applies to everyone. Without
	// Scopes and All it allows nothing.
	AccessRules []storage.AccessRule
	// Registry registers clients and resolves client ids. Default: the clients of the store
	// are known; registration, client documents and private_key_jwt are not offered.
	Registry Registry
	// ClientUnusedTTL is how long a stored registration may wait for its first
	// sign-in: 7 days.
	ClientUnusedTTL time.Duration
	// ClientIdleTTL is how long a client without a live grant may be unused before it is forgotten:
	// 90 days. Only clients that registered themselves are forgotten.
	ClientIdleTTL time.Duration
	// ConfidentialOnly demands a secret of every registered client: "none" is neither advertised
	// nor accepted, except for clients that are identified by a document, which says how they
	// authenticate.
	ConfidentialOnly bool

	// Delegation signs people in at providers. Default: not offered, and grants that rest on
	// a provider are not honoured.
	Delegation Delegation
	// NoLocalLogin removes the password form from the login page, and the setup page that creates
	// the first account. It needs a Delegation.
	NoLocalLogin bool
	// DefaultProvider is where people are sent without being asked which provider they want; "":
	// they are asked, unless there is only one way to sign in.
	DefaultProvider string

	// SecurityEvents answers POST /events, to which issuers that are believed push security event
	// tokens (RFC 8935). secevent.Receiver is the usual one. Default: not offered.
	SecurityEvents http.Handler
	// Trust verifies assertions of issuers that the operator trusts. Default: none is accepted.
	Trust Trust
	// IssuerProviders are the ids of the providers of Delegation, by the issuer that they are: a person
	// who signs in there is known by the assertions of that issuer.
	IssuerProviders map[string][]string

	// Console makes the pages below /admin, for people with a role. Default: there are none.
	Console func(*Visitors) http.Handler
	// ConsoleApart leaves them out of Handler and Register: Server.ConsoleHandler has them.
	ConsoleApart bool

	// Mailer writes to people. Default: there is no mail.
	Mailer Mailer
	// Webhook is told of changes to accounts. Default: none.
	Webhook Webhook

	SignIn SignInPolicy
	Tokens TokenPolicy
	DPoP   DPoPPolicy
	Keys   KeyPolicy
	// ProgramKeys are those that people make for programs of theirs.
	ProgramKeys ProgramKeyPolicy
	// HelpersOff refuses the exchange of an access token for one with less (AS-243). What was handed on
	// stays good until it expires.
	HelpersOff bool
	// SessionTTL is how long a browser stays signed in. Default: 14 days; 12 hours where the
	// issuer is http on loopback, since the cookie goes to every port there.
	SessionTTL time.Duration
	// Finish is how long Serve lets open requests go on when it has been told to end. Default: 30 seconds.
	Finish time.Duration
	// ProductName is the name of this server on its pages. Default: "mcp-authd".
	ProductName string
	// Branding is how the pages look and speak. Default: as ours.
	Branding web.Branding
	// TrustedProxies may name the client in X-Forwarded-For. Default: none.
	TrustedProxies TrustedProxies

	Logger *slog.Logger    // default: discard
	Audit  *audit.Recorder // default: discard
	// AuditRequired has answers wait until the Logs of Audit keep what they rest on, and be 503 when they
	// do not within some seconds.
	AuditRequired bool
	Attempts      *attempt.Recorder // of what was asked on the way to a token; default: nothing is kept
	// Answered is told of each request when it has been answered, for metrics. Default: nothing is.
	Answered func(Answered)
	Now      func() time.Time

	// passwords is what hashing one costs; nil: the default of users. Tests take less.
	passwords *argon2id.Params
}

// The defaults of Config.
const (
	DefaultSessionTTL      = 14 * 24 * time.Hour // but on loopback
	DefaultClientUnusedTTL = 7 * 24 * time.Hour
	DefaultClientIdleTTL   = 90 * 24 * time.Hour
)

func (c Config) withDefaults() (Config, error) {
	tokens, keys := DefaultTokenPolicy(), DefaultKeyPolicy()
	setDefault(&c.Finish, stopping.Finish)
	setDefault(&c.Tokens.CodeTTL, tokens.CodeTTL)
	setDefault(&c.Tokens.AccessTTL, tokens.AccessTTL)
	setDefault(&c.Tokens.RefreshIdleTTL, tokens.RefreshIdleTTL)
	setDefault(&c.Tokens.RefreshMaxTTL, tokens.RefreshMaxTTL)
	setDefault(&c.Tokens.RefreshGrace, tokens.RefreshGrace)
	setDefault(&c.Tokens.StatusTTL, tokens.StatusTTL)
	c.Tokens.StatusTTL = max(c.Tokens.StatusTTL, 0)
	setDefault(&c.Tokens.Algorithm, tokens.Algorithm)
	setDefault(&c.Keys.RotateEvery, keys.RotateEvery)
	setDefault(&c.Keys.PublishAhead, keys.PublishAhead)
	setDefault(&c.ProgramKeys.MaxTTL, DefaultProgramKeyTTL)
	setDefault(&c.SessionTTL, defaultSessionTTL(c.Issuer))
	setDefault(&c.ClientUnusedTTL, DefaultClientUnusedTTL)
	setDefault(&c.ClientIdleTTL, DefaultClientIdleTTL)
	setDefault(&c.ProductName, "mcp-authd")
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.DPoP.Replays == nil {
		c.DPoP.Replays = dpop.NewMemory(c.Now)
	}
	c.Tokens.RefreshGrace = max(c.Tokens.RefreshGrace, 0)
	c.Keys.RotateEvery = max(c.Keys.RotateEvery, 0)
	return c, c.validate()
}

// settings are a Config with the roles that its Registry and its Delegation play, each nil
// where it is not offered.
type settings struct {
	Config
	Clients      Clients
	Documents    Documents
	ClientKeys   ClientKeys
	Registration http.Handler

	Bindings          Bindings
	Accounts          Accounts
	Broker            Broker
	BackchannelLogout http.Handler
}

func newSettings(c Config) settings {
	s := settings{Config: c, Clients: c.Store}
	if r := c.Registry; r != nil {
		s.Clients, s.ClientKeys = r, r
		if r.OffersDocuments() {
			s.Documents = r
		}
		if r.OffersRegistration() {
			s.Registration = r
		}
	}
	if d := c.Delegation; d != nil {
		s.Bindings, s.Accounts, s.BackchannelLogout = d, d, d.Logout()
		if d.OffersTokens() {
			s.Broker = d
		}
	}
	return s
}

func (c Config) validate() error {
	var errs []error
	if err := metadata.ValidateIssuer(c.Issuer); err != nil {
		errs = append(errs, err)
	}
	if c.Store == nil {
		errs = append(errs, errors.New("no store"))
	}
	if c.Tokens.CodeTTL < 0 || c.Tokens.CodeTTL > 10*time.Minute {
		errs = append(errs, errors.New("a code may live ten minutes at most (OAuth 2.1 §4.1.2)")) // AS-49
	}
	if c.Tokens.AccessTTL < time.Second || c.Tokens.AccessTTL > 24*time.Hour {
		errs = append(errs, errors.New("an access token must live between one second and a day"))
	}
	if c.Keys.RotateEvery > 0 && c.Keys.RotateEvery <= c.Keys.PublishAhead {
		errs = append(errs, errors.New("a key must sign for longer than it is published ahead"))
	}
	if ttl := c.ProgramKeys.MaxTTL; ttl < MinProgramKeyTTL || ttl > MaxProgramKeyTTL {
		errs = append(errs, errors.New("a key for a program must live between a day and a year"))
	}
	if c.Tokens.RefreshGrace > storage.MaxGrace {
		errs = append(errs, errors.New("the refresh grace window may be ten minutes at most"))
	}
	return errors.Join(append(errs, c.validateDelegation(), c.validateSignIn())...)
}

func (c Config) validateDelegation() error {
	if c.Delegation == nil {
		if c.NoLocalLogin || c.DefaultProvider != "" {
			return errors.New("without a provider no one could sign in")
		}
		return nil
	}
	var errs []error
	w := flow.SignInOptions{Password: !c.NoLocalLogin, At: c.Delegation}
	if !w.Password && len(w.Providers()) == 0 {
		errs = append(errs, errors.New("without a provider no one could sign in"))
	}
	if _, ok := w.Provider(c.DefaultProvider); !ok && c.DefaultProvider != "" {
		errs = append(errs,
			errors.New("the default provider "+strconv.Quote(c.DefaultProvider)+" is not one of the providers"))
	}
	return errors.Join(errs...)
}

// defaultSessionTTL is shorter where other servers that the browser visits get the cookie
// too: cookies know no ports (RFC 6265 §8.5), and on loopback each port is another program.
func defaultSessionTTL(issuer string) time.Duration {
	if oauth.IsLoopbackRedirect(issuer) {
		return 12 * time.Hour
	}
	return DefaultSessionTTL
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// rules returns the rules for which scopes accounts may have.
func (s settings) rules() *access.Rules {
	var providers access.Providers
	if s.Bindings != nil {
		providers = s.Bindings
	}
	return access.New(s.Store, providers, s.AccessRules, s.Now)
}
