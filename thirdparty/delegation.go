package thirdparty

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/recent"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/thirdparty/internal/provider"
)

// Delegation signs users in at providers and keeps the resulting sessions. It implements
// authserver.Delegation and is safe for concurrent use.
type Delegation struct {
	cfg        Config
	ring       *secrets.Ring
	vault      vault
	connectors []*connector // in the order of the configuration
	byID       map[string]*connector
	health     map[string]*provider.Health // by connector
	junk       *bounded.Limiter[string]    // invalid logout tokens, by connector

	groups recent.Value[[]storage.ProviderGroup]

	settling sync.Mutex  // held while the store is settled
	settled  atomic.Bool // see settle

	// flights combines concurrent questions about one session into one.
	flights singleflight.Group
	// pending counts running questions, which outlive the requests that asked them.
	pending sync.WaitGroup
}

// New checks a configuration and returns its Delegation. It makes no request, so an unreachable
// provider does not prevent a start. Errors about a connector wrap ErrConfig.
func New(c Config) (*Delegation, error) {
	if c.Store == nil {
		return nil, fmt.Errorf("%w: no store", ErrConfig)
	}
	if c.ProductName == "" {
		c.ProductName = "mcp-authd"
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	ring, err := secrets.NewRing(c.SecretKeys...)
	if err != nil {
		return nil, fmt.Errorf("thirdparty: %w", err)
	}
	d := &Delegation{
		cfg: c, ring: ring, vault: vault{ring},
		byID: map[string]*connector{}, health: map[string]*provider.Health{},
		junk: bounded.NewLimiter[string](len(c.Connectors), c.Now),
	}
	d.groups = recent.Value[[]storage.ProviderGroup]{Read: d.readGroups, Now: c.Now, Strict: true}
	return d, d.connect()
}

func (d *Delegation) connect() error {
	around := provider.Options{ProductName: d.cfg.ProductName, Now: d.cfg.Now}
	var errs []error
	for _, configured := range d.cfg.Connectors {
		if d.cfg.Asked != nil {
			around.Asked = func(took time.Duration, err error) { d.cfg.Asked(configured.ID, took, err) }
		}
		around.Connector = configured.ID
		c, err := newConnector(configured, d.cfg.Issuer, around)
		switch {
		case err != nil:
			errs = append(errs, err)
		case d.byID[c.ID] != nil:
			errs = append(errs, fmt.Errorf("%w: two connectors have the id %q", ErrConfig, c.ID))
		default:
			d.connectors = append(d.connectors, c)
			d.byID[c.ID], d.health[c.ID] = c, provider.NewHealth()
		}
	}
	return errors.Join(errs...)
}

// Close waits until the running questions to providers are answered and the answers are stored. A
// rotated refresh token that is in transit exists nowhere else. Call Close after the last request.
func (d *Delegation) Close() { d.pending.Wait() }

// Providers lists the providers in the order of the configuration.
func (d *Delegation) Providers() []delegation.Provider {
	out := make([]delegation.Provider, len(d.connectors))
	for i, c := range d.connectors {
		out[i] = c.public()
	}
	return out
}

// Route returns the provider for the domain of a login_hint, or "".
func (d *Delegation) Route(loginHint string) string {
	_, domain, ok := strings.Cut(loginHint, "@")
	if !ok || strings.Contains(domain, "@") {
		return ""
	}
	domain = strings.ToLower(strings.TrimSpace(domain))
	for _, c := range d.connectors {
		if c.routes(domain) {
			return c.ID
		}
	}
	return ""
}

func (d *Delegation) now() time.Time { return d.cfg.Now() }

func (d *Delegation) record(ctx context.Context, event string, c *connector, attrs ...slog.Attr) {
	d.cfg.Audit.Record(ctx, event, append([]slog.Attr{slog.String("connector", c.ID)}, attrs...)...)
}

// Messages for users and clients.
var (
	sayUnreachable = sentence.New("{provider} could not be reached. Please try again in a minute.", "unreachable")
	sayUnknown     = sentence.New("We could not check your {provider} sign-in just now. "+
		"Please try again in a minute.", "unchecked")
	sayGarbage = sentence.New("{provider} gave an answer that this server cannot use. "+
		"Please tell the operator of this server.", "garbage")
	sayConfig = sentence.New("{provider} does not accept this server. "+
		"Please tell the operator of this server that its registration at {provider} needs attention.", "misconfigured")
	sayNotGranted = sentence.New("The sign-in at {provider} was not completed. Please try again.", "not_granted")
	sayNotAllowed = sentence.New("Your account at {provider} may not use this server. "+
		"If it should, please ask the operator of this server, or sign in with another account.", "not_allowed")
	sayUnproved = sentence.New("{provider} cannot prove that you have just signed in there, "+
		"as your application demands. Please sign in in another way, or ask the operator of this server.", "unproved")
	sayDeclined   = sentence.New("At {provider}, access was declined.", "declined")
	sayUnapproved = sentence.New("{provider} did not let you approve this server. "+
		"An administrator of your organization may have to approve it there first.", "unapproved")
	sayOtherAccount = sentence.New("The account that is signed in at {provider} is not the one that is connected here.",
		"other_account")
	sayNotAskedAgain = sentence.New("{provider} did not ask you to sign in again, as your application requires. "+
		"Please sign out there and try again.", "not_asked_again")
	sayBelongsToOther = sentence.New("This account at {provider} belongs to another person on this server already. "+
		"Sign in with it, or choose another one.", "belongs_to_other")
)

// told returns the protocol error for a failure of a provider. The cause may quote the provider. It
// is for administrators only: the log and the recorded attempt contain it.
func (c *connector) told(err error) *oauth.Error {
	return c.tell(err).Because(attempt.CauseProvider.Because(err))
}

func (c *connector) tell(err error) *oauth.Error {
	code, text := oauth.ServerError, sayGarbage
	switch {
	case errors.Is(err, provider.ErrUnreachable):
		e := c.say(oauth.TemporarilyUnavailable, sayUnreachable)
		e.RetryAfter = retryAfter
		return e
	case errors.Is(err, provider.ErrDenied):
		code, text = oauth.AccessDenied, sayNotGranted
	case errors.Is(err, provider.ErrMisconfigured), errors.Is(err, provider.ErrUnsupported):
		text = sayConfig
	}
	return c.say(code, text)
}

// say returns a protocol error with the provider's name in its text.
func (c *connector) say(code oauth.Code, text sentence.Sentence) *oauth.Error {
	return text.With("provider", oauth.SafeDescription(c.public().Name)).Error(code)
}

// retryAfter is when a client may retry a request that failed because of a provider.
const retryAfter = 15 * time.Second
