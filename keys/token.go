package keys

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
)

// The token key is that of the MAC which refresh tokens carry. It is random and not derived
// from a master key, under which it is merely sealed: so refresh tokens outlive a change of
// that, and a thief of the master key needs the database too.
const (
	tokenKeyName = "refresh tokens"
	tokenKeyWhat = "the key of refresh tokens"
	tokenKeySize = 32
)

// tokenKey is the token key as last read.
type tokenKey struct {
	key atomic.Pointer[[]byte]

	mu     sync.Mutex // guards what follows; held while the key is read
	stored bool       // in the database
	readAt time.Time
	failed error // of that reading
}

// TokenKey returns the key of the MAC that refresh tokens carry.
func (m *Manager) TokenKey() []byte { return *m.token.key.Load() }

// NewerTokenKey returns the token key as it is now, for a caller who has met a token that
// another one made. Callers who send junk cost one small read in rereadPause. An error
// means that the database could not be asked, so that nothing is known of the token.
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

// tendTokenKey reads the token key, and makes the first one. Of several replicas that start
// together one makes it. A database that has lost it gets the one that is known back.
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

// readTokenKey takes over what is stored, or stores mine when nothing is.
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

// RenewTokenKey replaces the token key, because others may know it: every refresh token
// that was issued before is worthless from now on, and people sign in again. Other replicas
// learn of it with the first token of the new key, or within seconds.
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
