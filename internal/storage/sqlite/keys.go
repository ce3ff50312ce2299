package sqlite

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// PutNextKey implements storage.Keys.
func (s *Store) PutNextKey(ctx context.Context, active string, k storage.SigningKey) (stored bool, err error) {
	k.State = storage.KeyNext
	err = s.write(ctx, "PutNextKey", func(c *conn) error {
		n, err := c.exec(column.InsertKey+`SELECT ?,?,?,?,?,?,?,?,? WHERE EXISTS (SELECT 1 FROM signing_keys WHERE id = ? AND state = 'active')
			ON CONFLICT (algorithm) WHERE state = 'next' DO NOTHING`, append(column.KeyValues(k), active)...)
		stored = n == 1
		return err
	})
	return stored && err == nil, err
}

// RetireKey implements storage.Keys.
func (s *Store) RetireKey(ctx context.Context, id string, now, expires time.Time) error {
	return s.write(ctx, "RetireKey", func(c *conn) error {
		return changed(storage.ErrSpent)(c.exec(`UPDATE signing_keys SET state = 'retired', retired_at = ?2, expires_at = ?3
			WHERE id = ?1 AND state IN ('active', 'next') AND EXISTS (SELECT 1 FROM signing_keys o WHERE o.state = 'active' AND o.id <> ?1)`,
			id, column.Millis(now), column.Millis(expires)))
	})
}

// RevokeKey implements storage.KeyCustody.
func (s *Store) RevokeKey(ctx context.Context, id string) error {
	return s.write(ctx, "RevokeKey", func(c *conn) error {
		n, err := c.exec(`DELETE FROM signing_keys WHERE id = ?1 AND NOT (state = 'active'
			AND NOT EXISTS (SELECT 1 FROM signing_keys o WHERE o.state = 'active' AND o.id <> ?1))`, id)
		if err != nil || n > 0 {
			return err
		}
		if err := c.one([]any{&n}, "SELECT 1 FROM signing_keys WHERE id = ?", id); err != nil {
			return err
		}
		return storage.ErrSpent
	})
}

// SharedKey implements storage.SharedKeys.
func (s *Store) SharedKey(ctx context.Context, name string, sealed []byte) (out []byte, err error) {
	do := s.read
	if sealed != nil {
		do = s.write
	}
	err = do(ctx, "SharedKey", func(c *conn) error {
		if sealed != nil {
			if _, err := c.exec("INSERT INTO settings (name, value) VALUES ('key:' || ?, ?) ON CONFLICT DO NOTHING",
				name, sealed); err != nil {
				return err
			}
		}
		return ignore(c.one([]any{&out}, "SELECT value FROM settings WHERE name = 'key:' || ?", name),
			storage.ErrNotFound)
	})
	return out, err
}
