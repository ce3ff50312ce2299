package sqlite

import (
	"bytes"
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const settingSetup = "setup_token"

// PutSetupToken implements storage.Setup.
func (s *Store) PutSetupToken(ctx context.Context, h storage.Hash, expires, _ time.Time) error {
	return s.write(ctx, "PutSetupToken", func(c *conn) error {
		if err := noAdmin(c); err != nil {
			return err
		}
		_, err := c.exec(`INSERT INTO settings (name, value, expires_at) VALUES (?, ?, ?)
			ON CONFLICT (name) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at`,
			settingSetup, h[:], column.Millis(expires))
		return err
	})
}

// SetupOpen implements storage.Setup.
func (s *Store) SetupOpen(ctx context.Context) (open bool, err error) {
	err = s.read(ctx, "SetupOpen", func(c *conn) error {
		return c.one([]any{&open}, "SELECT NOT EXISTS (SELECT 1 FROM users WHERE admin)")
	})
	return open, err
}

// CheckSetupToken implements storage.Setup.
func (s *Store) CheckSetupToken(ctx context.Context, h storage.Hash, now time.Time) error {
	return s.read(ctx, "CheckSetupToken", func(c *conn) error { return checkSetup(c, h, now) })
}

func checkSetup(c *conn, h storage.Hash, now time.Time) error {
	if err := noAdmin(c); err != nil {
		return err
	}
	var token []byte
	var expires int64
	err := c.one([]any{&token, &expires}, "SELECT value, expires_at FROM settings WHERE name = ?", settingSetup)
	switch {
	case err != nil:
		return err
	case !bytes.Equal(token, h[:]):
		return storage.ErrNotFound
	case expires <= column.Millis(now):
		return storage.ErrExpired
	}
	return nil
}

// CreateFirstAdmin implements storage.Setup.
func (s *Store) CreateFirstAdmin(ctx context.Context, h storage.Hash, u storage.User, now time.Time) error {
	return s.write(ctx, "CreateFirstAdmin", func(c *conn) error {
		if err := checkSetup(c, h, now); err != nil {
			return err
		}
		u.Role = storage.Administrator
		return all(
			run(c, "DELETE FROM settings WHERE name = ?", settingSetup),
			func() error {
				return changed(storage.ErrExists)(putUser(c, u))
			})
	})
}

func noAdmin(c *conn) error {
	var open bool
	err := c.one([]any{&open}, "SELECT NOT EXISTS (SELECT 1 FROM users WHERE admin)")
	if err == nil && !open {
		return storage.ErrExists
	}
	return err
}
