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

	"github.com/mcp-authd/mcp-authd/authserver/internal/flow"
	"github.com/mcp-authd/mcp-authd/internal/access"
	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/dpop"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/stopping"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/metadata"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Store lists the storage methods that the authorization server uses. internal/storage/sqlite and
// internal/storage/postgres implement it.
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
	// ApplicationKeys is storage.Applications.ApplicationKeys.
	ApplicationKeys(ctx context.Context, clientIDs []string) (map[string]string, error)
	// Grant is storage.Grants.Grant.
	Grant(ctx context.Context, id string) (storage.Grant, error)
	// Upstream is storage.Upstreams.Upstream.
	Upstream(ctx context.Context, id string) (storage.Upstream, error)
	// SessionEnd is storage.UpstreamEnds.SessionEnd.
	SessionEnd(ctx context.Context, session storage.Hash, now time.Time) (connector, reason string, err error)
	storage.Events
	storage.Notices
	storage.OneTimeLinks
	storage.LinkStops
}

// Clients finds a client by its id. It returns storage.ErrNotFound if the client is unknown, and
// storage.ErrRevoked if it was deleted. dcr.Registry implements it.
//
// An approval fails if the stored client differs from the returned one. The exception is
// storage.SourceConfig, the source of clients that the program itself defines: the store has only a
// copy of these.
type Clients interface {
	Client(ctx context.Context, id string) (storage.Client, error)
}

// CurrentClients is implemented by Clients with a cache that can be bypassed.
type CurrentClients interface {
	// Current is Client without the cache.
	Current(ctx context.Context, id string) (storage.Client, error)
}

// Documents reads client id metadata documents. dcr.Registry implements it.
type Documents interface {
	// Fetch reads the document at id, again if necessary. It is called only for signed-in users. It
	// returns storage.ErrNotFound if the document is invalid.
	Fetch(ctx context.Context, id string) (storage.Client, error)
	// Vouched reports whether the operator vouches for the client.
	Vouched(c storage.Client) bool
}

// ClientKeys finds the public keys that may verify a client's assertion whose header contains kid,
// or no kid. dcr.Registry implements it.
type ClientKeys interface {
	ClientKeys(ctx context.Context, c storage.Client, kid string) ([]jose.JSONWebKey, error)
}

// Registry registers clients and finds them. dcr.Registry implements it.
type Registry interface {
	Clients
	Documents
	ClientKeys
	// Handler serves /register (RFC 7591) and /register/{client} (RFC 7592).
	http.Handler
	// OffersRegistration reports whether clients may register; otherwise /register does not exist.
	OffersRegistration() bool
	// OffersDocuments reports whether client ids may be URLs of metadata documents; otherwise such
	// clients are unknown.
	OffersDocuments() bool
	// Attach is called once, by New, with values of the server: its issuer, the scopes that can be
	// granted, the scopes granted by default, and a function for the client address of a request.
	Attach(issuer string, known, standard func(context.Context) oauth.Scopes, clientAddr func(*http.Request) netip.Addr)
}

// Config is the parts of an authorization server, for Assemble. Issuer, Store and SecretKeys are required; every other
// zero value is a safe default.
type Config struct {
	// Issuer is the issuer identifier: an https URL (or http on loopback) without query, fragment
	// and trailing slash. It is published and compared as exactly this string and never derived
	// from a request.
	Issuer string
	Store  Store
	// Allowances counts requests against limits for all replicas together; Store implements it.
	// Default: each replica counts alone.
	Allowances storage.Allowances
	// SecretKeys are the master keys, the primary first, each of at least 32 bytes.
	SecretKeys [][]byte

	// Resources are the configured protected resources with their aliases; the store may contain
	// more. The first one is the default.
	Resources []storage.Resource
	// AccessRules limit the scopes that accounts may use, in addition to the rules in the store. A
	// rule here overrides a stored one with the same resource and subject. A rule with neither
	// UserID nor Group applies to everyone. A rule without Scopes and All allows nothing.
	AccessRules []storage.AccessRule
	// Registry registers clients and finds them. Default: only stored clients are known;
	// registration, metadata documents and private_key_jwt are not supported.
	Registry Registry
	// ClientUnusedTTL is how long a stored registration may wait for its first sign-in. Default: 7
	// days.
	ClientUnusedTTL time.Duration
	// ClientIdleTTL is how long a client without a live grant may be unused before it is deleted.
	// Default: 90 days. Only clients that registered themselves are deleted.
	ClientIdleTTL time.Duration
	// ConfidentialOnly requires credentials of every registered client: the method "none" is
	// neither advertised nor accepted. Clients with a metadata document are excepted, because it
	// defines their method.
	ConfidentialOnly bool

	// Delegation signs users in at providers. Default: not offered, and grants that depend on a
	// provider are refused.
	Delegation Delegation
	// NoLocalLogin removes the password form from the login page, and the setup page that creates
	// the first account. It requires a Delegation.
	NoLocalLogin bool
	// DefaultProvider is the provider for users who have not chosen one. Default: users choose,
	// unless there is only one way to sign in.
	DefaultProvider string

	// SecurityEvents serves POST /events for security event tokens that issuers push (RFC 8935).
	// secevent.Receiver implements it. Default: not offered.
	SecurityEvents http.Handler
	// Trust verifies assertions of trusted issuers. Default: no assertion is accepted.
	Trust Trust
	// IssuerProviders maps issuers to the ids of providers of Delegation with this issuer.
	// Assertions of the issuer then identify the users who signed in there.
	IssuerProviders map[string][]string

	// Console returns the handler of the pages below /admin, for users with a role. Default: no
	// console.
	Console func(*Visitors) http.Handler
	// ConsoleApart excludes these pages from Handler and Register. Server.ConsoleHandler serves
	// them.
	ConsoleApart bool

	// Mailer sends mail to users. Default: no mail is sent.
	Mailer Mailer
	// Webhook receives changes of accounts. Default: none.
	Webhook Webhook

	SignIn SignInPolicy
	Tokens TokenPolicy
	DPoP   DPoPPolicy
	Keys   KeyPolicy
	// ProgramKeys configures the API keys that users create for their programs.
	ProgramKeys ProgramKeyPolicy
	// HelpersOff refuses to exchange an access token for one with fewer scopes (AS-243). Issued
	// tokens stay valid until they expire.
	HelpersOff bool
	// SessionTTL is how long a browser stays signed in. Default: 14 days, or 12 hours if the issuer
	// is http on loopback, because the cookie is sent to every port there.
	SessionTTL time.Duration
	// Finish is how long Serve waits for open requests when it stops. Default: 30 seconds.
	Finish time.Duration
	// ProductName is the name of this server on its pages. Default: "mcp-authd".
	ProductName string
	// Branding changes the look and the texts of the pages. Default: the built-in ones.
	Branding pages.Branding
	// TrustedProxies lists the proxies whose X-Forwarded-For is trusted. Default: none.
	TrustedProxies TrustedProxies

	Logger *slog.Logger    // default: discard
	Audit  *audit.Recorder // default: discard
	// AuditRequired delays responses until the Logs of Audit have stored the related entries. After
	// some seconds, the response is 503 instead.
	AuditRequired bool
	Attempts      *attempt.Recorder // records the steps of authorizations; default: discard
	// Answered, if set, is called after each answered request, for metrics.
	Answered func(Answered)
	Now      func() time.Time

	// passwords are the password hash parameters; nil: the default of users. Tests use a lower
	// cost.
	passwords *argon2id.Params
}

// Defaults of Config.
const (
	DefaultSessionTTL      = 14 * 24 * time.Hour // except on loopback
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

// settings is a Config with the interfaces that its Registry and its Delegation implement, each nil
// if not offered.
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

// defaultSessionTTL returns a shorter lifetime on loopback, where other servers get the cookie:
// cookies are not limited to a port (RFC 6265 §8.5), and each port is another program.
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

// rules returns the access rules, which limit the scopes of accounts.
func (s settings) rules() *access.Rules {
	var providers access.Providers
	if s.Bindings != nil {
		providers = s.Bindings
	}
	return access.New(s.Store, providers, s.AccessRules, s.Now)
}
