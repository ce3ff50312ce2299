// Package keys manages the signing keys of access tokens: it makes the first one,
// signs, publishes the public halves as a JWK Set (RFC 7517), rotates, and verifies
// this server's own tokens.
//
// A key is next, then active, then retired (storage.KeyState). A retired key stays
// published until the last token that it signed has expired, plus the time that
// resource servers may keep an old JWK Set. Private keys are stored sealed under the
// master key and bound to their id.
package keys

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Store is what a Manager needs of a store.
type Store interface {
	storage.Keys
	storage.KeyCustody
}

// Config configures a Manager. Store and SecretKeys are required.
type Config struct {
	Store      Store
	SecretKeys [][]byte
	Algorithm  string        // ES256 (default), EdDSA or RS256
	AccessTTL  time.Duration // how long a token lives; default 15 minutes
	Now        func() time.Time
	Audit      *audit.Recorder
	Logger     *slog.Logger
}

const (
	// cacheTTL bounds how long a rotation by another replica stays unseen.
	cacheTTL = 5 * time.Second
	// publishedCache is how long resource servers may keep a JWK Set.
	publishedCache = time.Hour
)

// Manager signs and publishes. It is safe for concurrent use.
type Manager struct {
	cfg  Config
	ring *secrets.Ring

	mu      sync.Mutex // guards current; held while it is read anew, so that one caller asks the store
	current *set
}

// New returns a manager and makes the first signing key if there is none. Of
// several replicas that start together one makes it and the others use it.
func New(ctx context.Context, c Config) (*Manager, error) {
	if c.Algorithm == "" {
		c.Algorithm = string(jose.ES256)
	}
	if c.AccessTTL == 0 {
		c.AccessTTL = 15 * time.Minute
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	ring, err := secrets.NewRing(c.SecretKeys...)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	m := &Manager{cfg: c, ring: ring}
	if err := m.ensure(ctx); err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	return m, nil
}

// ensure makes the first key of the algorithm when none is active.
func (m *Manager) ensure(ctx context.Context) error {
	s, err := m.load(ctx)
	if err != nil || s.active != nil {
		return err
	}
	k, err := m.generate()
	if err != nil {
		return err
	}
	stored, err := m.cfg.Store.PutFirstKey(ctx, k)
	if err != nil {
		return err
	}
	if stored {
		m.cfg.Audit.Record(ctx, audit.SigningKeyCreated, slog.String("kid", k.ID), slog.String("algorithm", k.Algorithm))
	}
	m.invalidate()
	if s, err = m.load(ctx); err == nil && s.active == nil {
		err = errors.New("no active signing key")
	}
	return err
}

// Rotate makes a new active key and retires the present one, which stays published
// until every token that it signed has expired. Of N callers at once one rotates;
// the others find it done and return nil as well.
func (m *Manager) Rotate(ctx context.Context) error {
	m.invalidate()
	s, err := m.load(ctx)
	if err != nil {
		return fmt.Errorf("keys: rotate: %w", err)
	}
	if s.active == nil {
		return m.ensure(ctx)
	}
	k, err := m.generate()
	if err != nil {
		return fmt.Errorf("keys: rotate: %w", err)
	}
	now := m.cfg.Now()
	err = m.cfg.Store.RotateKey(ctx, s.active.id, k, now, now.Add(m.cfg.AccessTTL+publishedCache))
	m.invalidate()
	switch {
	case errors.Is(err, storage.ErrSpent):
		return nil
	case err != nil:
		return fmt.Errorf("keys: rotate: %w", err)
	}
	m.cfg.Audit.Record(ctx, audit.SigningKeyRotated, slog.String("from", s.active.id), slog.String("kid", k.ID))
	return nil
}

// List returns the keys that are published, oldest first, without their private parts.
func (m *Manager) List(ctx context.Context) ([]storage.SigningKey, error) {
	all, err := m.cfg.Store.Keys(ctx, m.cfg.Now())
	if err != nil {
		return nil, fmt.Errorf("keys: list: %w", err)
	}
	for i := range all {
		all[i].Private = nil
	}
	return all, nil
}

// Algorithms returns the JWS algorithms of the published keys.
func (m *Manager) Algorithms() []string { return []string{m.cfg.Algorithm} }

func (m *Manager) invalidate() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.current = nil
}

// load returns the current keys. When the store fails, the ones read before go on
// serving: signing must not stop for a moment's outage of what hardly ever changes.
func (m *Manager) load(ctx context.Context) (*set, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.cfg.Now()
	if m.current != nil && now.Sub(m.current.readAt) < cacheTTL && !now.Before(m.current.readAt) {
		return m.current, nil
	}
	stored, err := m.cfg.Store.Keys(ctx, now)
	if err != nil {
		if m.current != nil {
			m.cfg.Logger.WarnContext(ctx, "signing keys not read again, using those known", "error", err)
			return m.current, nil
		}
		return nil, err
	}
	s, err := m.newSet(stored, now)
	if err != nil {
		return nil, err
	}
	m.current = s
	return s, nil
}
