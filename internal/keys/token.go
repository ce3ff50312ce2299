package keys

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
)

// The token key is the MAC key of refresh tokens. It is random and only sealed with a master key,
// not derived from one. Refresh tokens therefore survive a change of the master key, and a thief of
// the master key also needs the database.
const (
	tokenKeyName = "refresh tokens"
	tokenKeyWhat = "the key of refresh tokens"
	tokenKeySize = 32
)

// tokenKey is the token key as last read.
type tokenKey struct {
	key atomic.Pointer[[]byte]

	mu     sync.Mutex // guards the fields below; held during a read
	stored bool       // the database has the key
	readAt time.Time
	failed error // error of that read
}

// TokenKey returns the MAC key of refresh tokens.
func (m *Manager) TokenKey() []byte { return *m.token.key.Load() }

// NewerTokenKey reads the token key again, for a caller whose token another replica may have
// issued. Invalid tokens cost at most one small read per rereadPause. An error means that the
// database is unavailable and the token's status is unknown.
func (m *Manager) NewerTokenKey(ctx context.Context) ([]byte, error) {
	m.token.mu.Lock()
	defer m.token.mu.Unlock()
	if now := m.cfg.Now(); now.Sub(m.token.readAt) >= rereadPause {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rereadTimeout)
		defer cancel()
		m.token.failed = m.readTokenKey(ctx, nil)
	}
	return m.TokenKey(), m.token.failed
}

// tendTokenKey reads the token key, or creates the first one. Of several replicas that start
// together, one creates it. If the database has lost the key, the known one is stored again.
func (m *Manager) tendTokenKey(ctx context.Context) error {
	m.token.mu.Lock()
	defer m.token.mu.Unlock()
	m.token.failed = m.readTokenKey(ctx, nil)
	if m.token.failed != nil || m.token.stored {
		return m.token.failed
	}
	mine := m.token.key.Load()
	if mine == nil {
		key := newTokenKey()
		mine = &key
	}
	return m.readTokenKey(ctx, m.sealTokenKey(*mine))
}

// readTokenKey adopts the stored key, or stores mine if the store has no key.
func (m *Manager) readTokenKey(ctx context.Context, mine []byte) error {
	sealed, err := m.cfg.Store.SharedKey(ctx, tokenKeyName, mine)
	m.token.readAt = m.cfg.Now()
	if m.token.stored = sealed != nil; err != nil || sealed == nil {
		return err
	}
	key, err := m.ring.Open(tokenKeyName, sealed, nil)
	if err != nil {
		return notOpened(tokenKeyWhat)
	}
	m.token.key.Store(&key)
	return nil
}

func newTokenKey() []byte {
	key := make([]byte, tokenKeySize)
	rand.Read(key)
	return key
}

func (m *Manager) sealTokenKey(key []byte) []byte { return m.ring.Seal(tokenKeyName, key, nil) }

// RenewTokenKey replaces the token key, because it may be compromised. Every refresh token issued
// before becomes invalid, and users must sign in again. Other replicas notice the new key with its
// first token, or within seconds.
func (m *Manager) RenewTokenKey(ctx context.Context) error {
	m.token.mu.Lock()
	defer m.token.mu.Unlock()
	old, err := m.cfg.Store.SharedKey(ctx, tokenKeyName, nil)
	if err != nil {
		return fmt.Errorf("keys: renew the token key: %w", err)
	}
	sealed := m.sealTokenKey(newTokenKey())
	if old != nil {
		err = m.cfg.Store.ReplaceSharedKey(ctx, tokenKeyName, old, sealed)
	} else {
		_, err = m.cfg.Store.SharedKey(ctx, tokenKeyName, sealed)
	}
	if err != nil {
		return fmt.Errorf("keys: renew the token key: %w", err)
	}
	m.cfg.Audit.Record(ctx, audit.TokenKeyRenewed, slog.Bool("first", old == nil))
	return m.readTokenKey(ctx, nil)
}
