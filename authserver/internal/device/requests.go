// Package device has what people decide on another device than the one that asks: the requests of
// devices without a browser (RFC 8628), and of browsers that are to be signed in (PE-15). It gives
// them their codes, and finds them again by what a person types elsewhere. It knows the store and
// no HTTP.
//
//	code.go      their codes
//	requests.go  a device asks
//	signin.go    a browser asks
//	begin.go     how many may ask
//	guess.go     a person types a code, or guesses one
package device

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/catalogue"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/allowance"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/policy"
	"github.com/mcp-authd/mcp-authd/storage"
)

const (
	// TTL is how long a person has to decide.
	TTL = 10 * time.Minute
	// Interval is how long a device waits between two polls (RFC 8628 §3.2).
	Interval = 5 * time.Second

	codePrefix = "mcpdc_" // of a device code
	codeTries  = 8        // until a user code is free
)

// Config is what Requests are made of.
type Config struct {
	Store   Store
	Catalog *catalogue.Catalogue
	// MAC hides user codes, which are short, from those who read the database.
	MAC    func(code string) storage.Hash
	Limits *allowance.Limits
	Audit  *audit.Recorder
	Now    func() time.Time
}

// Store is what Requests need of the store.
type Store interface {
	storage.Devices
	storage.Failures
}

// Requests are the requests of devices. It is safe for concurrent use.
type Requests struct {
	Config
	begun   beginnings
	guesses guesses
}

// New returns the requests in a store.
func New(c Config) *Requests {
	return &Requests{
		Config:  c,
		begun:   newBeginnings(c.Limits, "requests of devices"),
		guesses: guesses{c.Store, c.Audit, c.Now},
	}
}

// Ask is a device authorization request (RFC 8628 §3.1) of a client that has authenticated.
type Ask struct {
	Scopes    oauth.Scopes
	Resources []string      // RFC 8707 §2
	MaxAge    time.Duration // how long ago at most the person has proved who they are; negative: at any time
	ACR       string        // how well, "" for any way
	Agent     string        // what the device calls itself
	Address   string        // where it asks from
	Networks  []string      // the same, as it is counted
}

// Begun is the answer (RFC 8628 §3.2).
type Begun struct {
	DeviceCode, UserCode string
	ExpiresIn, Interval  time.Duration
}

// Begin stores the request of a client. Its error is an *oauth.Error.
func (q *Requests) Begin(ctx context.Context, client storage.Client, a Ask) (Begun, error) {
	if !slices.Contains(client.GrantTypes, oauth.GrantDeviceCode) {
		return Begun{}, oauth.NewError(oauth.UnauthorizedClient,
			"The client is not registered for the device authorization grant.")
	}
	resource, err := q.Catalog.Resolve(ctx, a.Resources)
	if err != nil {
		return Begun{}, err
	}
	if err := q.begun.take(ctx, a.Networks, "Too many devices are asking at once."); err != nil {
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

// put stores a request under a user code that is free.
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

// Find returns the request that waits under a code that was typed. ErrWrong; ErrThrottled; an
// *oauth.Error.
func (q *Requests) Find(ctx context.Context, typed string, g Guesser) (d storage.Device, err error) {
	code := Read(typed)
	err = q.guesses.look(ctx, code, g, func() (err error) {
		d, err = q.Store.DeviceByUserCode(ctx, q.MAC(code), q.Now())
		return err
	})
	return d, err
}

// Waiting is Find for a code that was found before: no guess.
func (q *Requests) Waiting(ctx context.Context, code string) (storage.Device, error) {
	d, err := q.Store.DeviceByUserCode(ctx, q.MAC(Read(code)), q.Now())
	return d, waiting(err)
}

// Deny decides a request against it. storage.ErrSpent when it was decided before; storage.ErrExpired.
func (q *Requests) Deny(ctx context.Context, d storage.Device) error {
	err := q.Store.DenyDevice(ctx, d.Code, q.Now())
	if err == nil || errors.Is(err, storage.ErrSpent) || errors.Is(err, storage.ErrExpired) {
		return err
	}
	return refusal.Unavailable(err)
}
