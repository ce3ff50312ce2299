package postgres

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	noAdmin = "SELECT NOT EXISTS (SELECT 1 FROM users WHERE admin)"

	setupRow  = "INSERT INTO settings (name) VALUES ('setup_token') ON CONFLICT DO NOTHING"
	setupRead = "SELECT value, expires_at FROM settings WHERE name = 'setup_token'"
	setupLock = setupRead + " FOR UPDATE"
	setupPut  = "UPDATE settings SET value = $1, expires_at = $2 WHERE name = 'setup_token'"
	setupTake = "UPDATE settings SET value = NULL, expires_at = NULL WHERE name = 'setup_token' AND value = $1"
)

// setupToken is the stored token; value is nil if no token is stored.
type setupToken struct {
	value   []byte
	expires *int64
	open    bool // no administrator exists
}

// accepts returns nil if the token with hash h is valid.
func (t setupToken) accepts(h storage.Hash, now time.Time) error {
	switch {
	case !t.open:
		return storage.ErrExists
	case !bytes.Equal(t.value, h[:]):
		return storage.ErrNotFound
	case *t.expires <= column.Millis(now):
		return storage.ErrExpired
	}
	return nil
}

// lockSetup lets one transaction at a time decide about the first administrator.
func lockSetup(ctx context.Context, q querier) (t setupToken, err error) {
	if _, err := q.Exec(ctx, setupRow); err != nil {
		return t, err
	}
	if err := one(ctx, q, []any{&t.value, &t.expires}, setupLock); err != nil {
		return t, err
	}
	return t, one(ctx, q, []any{&t.open}, noAdmin)
}

// PutSetupToken implements storage.Setup.
func (s *Store) PutSetupToken(ctx context.Context, h storage.Hash, expires, _ time.Time) error {
	return s.tx(ctx, "PutSetupToken", func(ctx context.Context, q querier) error {
		t, err := lockSetup(ctx, q)
		if err != nil {
			return err
		}
		if !t.open {
			return storage.ErrExists
		}
		_, err = q.Exec(ctx, setupPut, h[:], column.Millis(expires))
		return err
	})
}

// SetupOpen implements storage.Setup.
func (s *Store) SetupOpen(ctx context.Context) (open bool, err error) {
	err = s.do(ctx, "SetupOpen", func(ctx context.Context, q querier) error {
		return one(ctx, q, []any{&open}, noAdmin)
	})
	return open, err
}

// CheckSetupToken implements storage.Setup.
func (s *Store) CheckSetupToken(ctx context.Context, h storage.Hash, now time.Time) error {
	return s.do(ctx, "CheckSetupToken", func(ctx context.Context, q querier) error {
		var t setupToken
		if err := one(ctx, q, []any{&t.open}, noAdmin); err != nil {
			return err
		}
		if err := one(ctx, q, []any{&t.value, &t.expires}, setupRead); err != nil &&
			!errors.Is(err, storage.ErrNotFound) {
			return err
		}
		return t.accepts(h, now)
	})
}

// CreateFirstAdmin implements storage.Setup.
func (s *Store) CreateFirstAdmin(ctx context.Context, h storage.Hash, u storage.User, now time.Time) error {
	u.Role = storage.Administrator
	return s.tx(ctx, "CreateFirstAdmin", func(ctx context.Context, q querier) error {
		t, err := lockSetup(ctx, q)
		if err != nil {
			return err
		}
		if err := t.accepts(h, now); err != nil {
			return err
		}
		if err := changed(storage.ErrNotFound)(exec(ctx, q, setupTake, h[:])); err != nil {
			return err
		}
		return changed(storage.ErrExists)(putUser(ctx, q, u))
	})
}
