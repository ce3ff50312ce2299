// Package keys manages the signing keys of access tokens. It creates the first key, signs tokens,
// publishes the public keys as a JWK Set (RFC 7517), rotates keys, and verifies this server's own
// tokens.
//
// A key is next, then active, then retired (storage.KeyState). A next key is published but does not
// sign yet, so that every resource server has it before it sees its first token. A retired key
// stays published until its last token has expired, plus the time that resource servers may cache
// an old JWK Set.
//
// Tend advances the states. Any number of replicas may call it, since each step is a conditional
// statement that only one of them executes. Private keys are stored sealed with the master key and
// bound to their ID.
package keys

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Store lists the storage interfaces that a Manager uses.
type Store interface {
	storage.Keys
	storage.KeyCustody
	storage.SharedKeys
	Fingerprint(ctx context.Context, fp []byte) ([]byte, error) // see storage.Housekeeping
}

// Config configures a Manager. Store and SecretKeys are required.
type Config struct {
	Store      Store
	SecretKeys [][]byte      // master keys, the primary first
	Algorithm  string        // ES256 (default), EdDSA or RS256
	AccessTTL  time.Duration // lifetime of an access token; default 15 minutes
	// RotateEvery is how long a key signs before Tend replaces it. Zero: no rotation.
	RotateEvery time.Duration
	// PublishAhead is how long a key is published before it signs. It must exceed the time that JWK
	// Sets are cached. Default: 10 minutes. Negative: no delay.
	PublishAhead time.Duration
	Now          func() time.Time
	Audit        *audit.Recorder
	Logger       *slog.Logger
}

const (
	// cacheTTL limits how long a rotation by another replica goes unnoticed.
	cacheTTL = 5 * time.Second
	// rereadTimeout limits a refresh of cached keys, and the pause after a failed one. Waiting
	// callers can use the cached keys. See known.
	rereadTimeout = 2 * time.Second
	// rereadPause is the minimum time between two reads that unknown tokens cause.
	rereadPause = 200 * time.Millisecond
	// publishedCache is how long resource servers may cache a JWK Set. It also covers replicas that
	// sign with an old key for cacheTTL, and clock differences.
	publishedCache = time.Hour
	// publishAhead is twice the max-age of the JWK Set.
	publishAhead = 10 * time.Minute
)

// ErrNotFound is returned for a key that is not published.
var ErrNotFound = errors.New("keys: no such key")

// Manager signs tokens and publishes keys. It is safe for concurrent use.
type Manager struct {
	cfg  Config
	ring *secrets.Ring

	token tokenKey

	mu       sync.Mutex // guards the fields below; held during a read, so that only one caller reads the store
	current  *set
	failedAt time.Time // time of the last failed read
}

// New returns a manager and creates the first signing key if the store is empty. Of several
// replicas that start together, one creates it and the others use it.
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

// ensure creates the first key of the algorithm if it lacks an active one, and checks that a
// signing key is available.
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

// List returns the published keys, oldest first, without their private parts.
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

// Ready returns nil if a signing key is available.
func (m *Manager) Ready(ctx context.Context) error {
	s, err := m.load(ctx)
	if err != nil {
		return err
	}
	return s.signErr
}

// reload reads the keys from the store, bypassing the cache. Unlike load, it fails if the store
// fails: it is for decisions, not for serving requests.
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

// adopt makes the stored keys the current set.
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

// load returns the current keys. If the store fails, it returns the keys read earlier: signing must
// not stop for a short outage, and the keys hardly ever change.
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
		// The read continues if this caller's request is canceled, because other callers wait for
		// the result.
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

// errAway means that the keys could not be read again recently.
var errAway = errors.New("the store does not answer")

// newer returns the stored keys, for a caller whose token names a key that s lacks. Tokens with
// made-up keys cost at most one small read per rereadPause. An error means that the store is
// unavailable and the key's status is unknown.
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
