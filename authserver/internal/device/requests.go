// Package device handles requests that users decide on another device: of devices without a browser
// (RFC 8628), and of browsers to sign in (PE-15). It creates their codes, and finds a request by
// the code that a user types. It uses the store, and no HTTP.
//
//	code.go      codes
//	requests.go  requests of devices
//	signin.go    requests of browsers
//	begin.go     limits of new requests
//	guess.go     typed codes, and limits of guesses
package device

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/catalogue"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/allowance"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const (
	// TTL is how long a request may be decided.
	TTL = 10 * time.Minute
	// Interval is how long a device waits between two polls (RFC 8628 §3.2).
	Interval = 5 * time.Second

	codePrefix = "mcpdc_" // of a device code
	codeTries  = 8        // to find an unused user code
)

// Config configures Requests.
type Config struct {
	Store   Store
	Catalog *catalogue.Catalogue
	// MAC hides user codes, which are short, from readers of the database.
	MAC    func(code string) storage.Hash
	Limits *allowance.Limits
	Audit  *audit.Recorder
	Now    func() time.Time
}

// Store lists the storage methods that Requests uses.
type Store interface {
	storage.Devices
	storage.Failures
}

// Requests handles the requests of devices. It is safe for concurrent use.
type Requests struct {
	Config
	begun   beginnings
	guesses guesses
}

// New returns a Requests.
func New(c Config) *Requests {
	return &Requests{
		Config:  c,
		begun:   newBeginnings(c.Limits, "requests of devices"),
		guesses: guesses{c.Store, c.Audit, c.Now},
	}
}

// Ask is a device authorization request (RFC 8628 §3.1) of an authenticated client.
type Ask struct {
	Scopes    oauth.Scopes
	Resources []string      // RFC 8707 §2
	MaxAge    time.Duration // maximum age of the user's authentication; negative: any
	ACR       string        // required authentication context class, or ""
	Agent     string        // name that the device sends
	Address   string        // source address
	Networks  []string      // its networks, for the limits
}

// Begun is the response (RFC 8628 §3.2).
type Begun struct {
	DeviceCode, UserCode string
	ExpiresIn, Interval  time.Duration
}

// Begin stores the request of a client. Its error is an *oauth.Error.
func (q *Requests) Begin(ctx context.Context, client storage.Client, a Ask) (Begun, error) {
	if !slices.Contains(client.GrantTypes, oauth.GrantDeviceCode) {
		return Begun{}, sentence.NewError(oauth.UnauthorizedClient,
			"The client is not registered for the device authorization grant.", "no_device_grant")
	}
	resource, err := q.Catalog.Resolve(ctx, a.Resources)
	if err != nil {
		return Begun{}, err
	}
	crowded := sentence.New("Too many devices are asking at once.", "")
	if err := q.begun.take(ctx, a.Networks, crowded); err != nil {
		return Begun{}, err
	}
	now, code := q.Now(), secrets.Token(codePrefix)
	d := storage.Device{
		Code:      secrets.Hash(code),
		ClientID:  client.ID,
		Resource:  resource.URI,
		Scopes:    policy.Requestable(resource.Resource, a.Scopes),
		Agent:     form.Cut(a.Agent, 200),
		Address:   a.Address,
		CreatedAt: now,
		ExpiresAt: now.Add(TTL),
		Interval:  Interval,
		ACR:       a.ACR,
	}
	if a.MaxAge >= 0 {
		d.ProvedAfter = now.Add(-a.MaxAge)
	}
	userCode, err := q.put(ctx, d)
	if err != nil {
		return Begun{}, refusal.Unavailable(err)
	}
	q.Audit.Record(ctx, audit.DeviceRequested, slog.String("client_id", client.ID),
		slog.String("resource", d.Resource), slog.String("scope", d.Scopes.String()))
	return Begun{code, Show(userCode), TTL, Interval}, nil
}

// put stores a request with an unused user code.
func (q *Requests) put(ctx context.Context, d storage.Device) (userCode string, err error) {
	for range codeTries {
		userCode = newUserCode()
		d.UserCode = q.MAC(userCode)
		if err = q.Store.PutDevice(ctx, d); !errors.Is(err, storage.ErrExists) {
			break
		}
	}
	return userCode, err
}

// Find returns the request for a typed code. Its error is ErrWrong, ErrThrottled or an
// *oauth.Error.
func (q *Requests) Find(ctx context.Context, typed string, g Guesser) (d storage.Device, err error) {
	code := Read(typed)
	err = q.guesses.look(ctx, code, g, func() (err error) {
		d, err = q.Store.DeviceByUserCode(ctx, q.MAC(code), q.Now())
		return err
	})
	return d, err
}

// Waiting is Find for a code that was found before. It does not count as a guess.
func (q *Requests) Waiting(ctx context.Context, code string) (storage.Device, error) {
	d, err := q.Store.DeviceByUserCode(ctx, q.MAC(Read(code)), q.Now())
	return d, waiting(err)
}

// Deny denies a request. It returns storage.ErrSpent if the request was decided before, or
// storage.ErrExpired.
func (q *Requests) Deny(ctx context.Context, d storage.Device) error {
	err := q.Store.DenyDevice(ctx, d.Code, q.Now())
	if err == nil || errors.Is(err, storage.ErrSpent) || errors.Is(err, storage.ErrExpired) {
		return err
	}
	return refusal.Unavailable(err)
}
