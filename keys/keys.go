// Package keys manages the signing keys of access tokens: it makes the first one,
// signs, publishes the public halves as a JWK Set (RFC 7517), rotates, and verifies
// this server's own tokens.
//
// A key is next, then active, then retired (storage.KeyState). A next key is published
// but signs nothing yet, so that every resource server has it before it meets a token of
// it. A retired key stays published until the last token that it signed has expired, plus
// the time that resource servers may keep an old JWK Set. Tend moves keys along; any
// number of replicas may do so, since each step is a conditional statement that one of
// them wins. Private keys are stored sealed under the master key and bound to their id.
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
	storage.SharedKeys
	Fingerprint(ctx context.Context, fp []byte) ([]byte, error) // see storage.Housekeeping
}

// Config configures a Manager. Store and SecretKeys are required.
type Config struct {
	Store      Store
	SecretKeys [][]byte      // the master keys, the primary first
	Algorithm  string        // ES256 (default), EdDSA or RS256
	AccessTTL  time.Duration // how long a token lives; default 15 minutes
	// RotateEvery is how long a key signs before Tend replaces it. Zero: without end.
	RotateEvery time.Duration
	// PublishAhead is how long a key is published before it signs: the time for which
	// JWK Sets are cached, and some. Default: 10 minutes. Negative: not at all.
	PublishAhead time.Duration
	Now          func() time.Time
	Audit        *audit.Recorder
	Logger       *slog.Logger
}

const (
	// cacheTTL bounds how long a rotation by another replica stays unseen.
	cacheTTL = 5 * time.Second
	// rereadTimeout bounds reading what is known already, and how often that is tried in
	// vain: a caller that waits for it needs nothing from it now. See known.
	rereadTimeout = 2 * time.Second
	// rereadPause is the least between two readings that strange tokens cause.
	rereadPause = 200 * time.Millisecond
	// publishedCache is how long resource servers may keep a JWK Set. It also covers
	// the replicas that sign on for cacheTTL, and clocks that differ.
	publishedCache = time.Hour
	// publishAhead is twice the max-age of the JWK Set.
	publishAhead = 10 * time.Minute
)

// ErrNotFound is returned for a key that is not published.
var ErrNotFound = errors.New("keys: no such key")

// Manager signs and publishes. It is safe for concurrent use.
type Manager struct {
	cfg  Config
	ring *secrets.Ring

	token tokenKey

	mu       sync.Mutex // guards what follows; held while it is read again, so that one caller asks the store
	current  *set
	failedAt time.Time // when it could last not be read again
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
	if c.PublishAhead == 0 {
		c.PublishAhead = publishAhead
	}
	c.PublishAhead = max(c.PublishAhead, 0)
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
	if err := m.tendTokenKey(ctx); err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	return m, nil
}

// ensure makes the first key of the algorithm when none is active, and sees to it that
// there is a key to sign with.
func (m *Manager) ensure(ctx context.Context) error {
	s, err := m.load(ctx)
	if err != nil {
		return err
	}
	if m.activeOf(s) == nil {
		k, err := m.generate()
		if err != nil {
			return err
		}
		stored, err := m.cfg.Store.PutFirstKey(ctx, k)
		if err != nil {
			return err
		}
		if stored {
			m.cfg.Audit.Record(ctx, audit.SigningKeyCreated, slog.String("kid", k.ID),
				slog.String("algorithm", k.Algorithm))
		}
		if s, err = m.reload(ctx); err != nil {
			return err
		}
	}
	return s.signErr
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

// PublishAhead returns how long a key is published before it signs.
func (m *Manager) PublishAhead() time.Duration { return m.cfg.PublishAhead }

// Ready reports nil when there is a key to sign with.
func (m *Manager) Ready(ctx context.Context) error {
	s, err := m.load(ctx)
	if err != nil {
		return err
	}
	return s.signErr
}

// reload reads the keys from the store, whatever is known of them. Unlike load it fails
// when the store does: it is for decisions, not for service.
func (m *Manager) reload(ctx context.Context) (*set, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.cfg.Now()
	stored, err := m.cfg.Store.Keys(ctx, now)
	if err != nil {
		return nil, err
	}
	return m.adopt(ctx, stored, now)
}

// adopt makes what was read the current keys.
func (m *Manager) adopt(ctx context.Context, stored []storage.SigningKey, now time.Time) (*set, error) {
	s, err := m.newSet(ctx, stored, now)
	if err == nil {
		if s.verified = newVerified(m.cfg.Now); m.current != nil && m.current.etag == s.etag {
			s.verified = m.current.verified
		}
		m.current = s
	}
	return s, err
}

// load returns the current keys. When the store fails, the ones read before go on
// serving: signing must not stop for a moment's outage of what hardly ever changes.
func (m *Manager) load(ctx context.Context) (*set, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.cfg.Now()
	if m.current != nil {
		if age := now.Sub(m.current.readAt); age >= 0 && age < cacheTTL {
			return m.current, nil
		}
		if age := now.Sub(m.failedAt); age >= 0 && age < rereadTimeout {
			return m.current, nil
		}
		var cancel context.CancelFunc
		// A caller that goes away is no outage: others read what this one did.
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), rereadTimeout)
		defer cancel()
	}
	stored, err := m.cfg.Store.Keys(ctx, now)
	if err != nil {
		if m.current != nil {
			m.failedAt = m.cfg.Now()
			m.cfg.Logger.WarnContext(ctx, "signing keys not read again, using those known", "error", err)
			return m.current, nil
		}
		return nil, err
	}
	return m.adopt(ctx, stored, now)
}

// errAway: the keys could not be read again just now.
var errAway = errors.New("the store does not answer")

// newer returns the keys as they are now, for a caller that has met one that s lacks. A caller that
// sends tokens of keys that never were costs one small read in rereadPause. An error means that the
// store could not be asked, so that nothing is known of the key.
func (m *Manager) newer(ctx context.Context, s *set) (*set, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.cfg.Now()
	switch {
	case m.current != s, now.Sub(s.readAt) < rereadPause:
		return m.current, nil
	case now.Sub(m.failedAt) < rereadTimeout:
		return nil, errAway
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rereadTimeout)
	defer cancel()
	stored, err := m.cfg.Store.Keys(ctx, now)
	if err != nil {
		m.failedAt = m.cfg.Now()
		return nil, err
	}
	return m.adopt(ctx, stored, now)
}
