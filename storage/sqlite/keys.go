package sqlite

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/storage/internal/column"
)

// Keys implements storage.Keys.
func (s *Store) Keys(ctx context.Context, now time.Time) (out []storage.SigningKey, err error) {
	err = s.read(ctx, "keys", func(c *conn) error {
		return c.each(func(row scanner) error {
			var r column.KeyRow
			err := row.Scan(r.Dest()...)
			out = append(out, r.Key())
			return err
		}, "SELECT "+column.KeyColumns+" FROM signing_keys WHERE expires_at IS NULL OR expires_at > ? ORDER BY created_at, id", column.Millis(now))
	})
	return out, err
}

const insertKey = "INSERT INTO signing_keys (" + column.KeyColumns + ") VALUES (?,?,?,?,?,?,?,?) "

// PutFirstKey implements storage.Keys.
func (s *Store) PutFirstKey(ctx context.Context, k storage.SigningKey) (stored bool, err error) {
	k.State = storage.KeyActive
	err = s.write(ctx, "put first key", func(c *conn) error {
		n, err := c.exec(insertKey+"ON CONFLICT (algorithm) WHERE state = 'active' DO NOTHING", column.KeyValues(k)...)
		stored = n == 1
		return err
	})
	return stored && err == nil, err
}

// RotateKey implements storage.Keys.
func (s *Store) RotateKey(ctx context.Context, from string, next storage.SigningKey, now, expires time.Time) error {
	next.State = storage.KeyActive
	return s.write(ctx, "rotate key", func(c *conn) error {
		err := changed(storage.ErrSpent)(c.exec(`UPDATE signing_keys SET state = 'retired', retired_at = ?, expires_at = ?
			WHERE id = ? AND algorithm = ? AND state = 'active'`,
			column.Millis(now), column.Millis(expires), from, next.Algorithm))
		if err != nil {
			return err
		}
		return changed(storage.ErrExists)(c.exec(insertKey+`ON CONFLICT (id) DO UPDATE SET state = 'active' WHERE state = 'next'`,
			column.KeyValues(next)...))
	})
}
