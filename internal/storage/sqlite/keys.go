package sqlite

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// Keys implements storage.Keys.
func (s *Store) Keys(ctx context.Context, now time.Time) (out []storage.SigningKey, err error) {
	err = s.read(ctx, "Keys", func(c *conn) (err error) {
		out, err = each(c, func(row scanner) (storage.SigningKey, error) {
			var r column.KeyRow
			err := row.Scan(r.Dest()...)
			return r.Key(), err
		}, "SELECT "+column.KeyColumns+
			" FROM signing_keys WHERE expires_at IS NULL OR expires_at > ? ORDER BY created_at, id", column.Millis(now))
		return err
	})
	return out, err
}

const insertKey = "INSERT INTO signing_keys (" + column.KeyColumns + ") "

// PutFirstKey implements storage.Keys.
func (s *Store) PutFirstKey(ctx context.Context, k storage.SigningKey) (stored bool, err error) {
	k.State = storage.KeyActive
	err = s.write(ctx, "PutFirstKey", func(c *conn) error {
		n, err := c.exec(insertKey+
			"VALUES (?,?,?,?,?,?,?,?,?) ON CONFLICT (algorithm) WHERE state = 'active' DO NOTHING",
			column.KeyValues(k)...)
		stored = n == 1
		return err
	})
	return stored && err == nil, err
}

// PutNextKey implements storage.Keys.
func (s *Store) PutNextKey(ctx context.Context, active string, k storage.SigningKey) (stored bool, err error) {
	k.State = storage.KeyNext
	err = s.write(ctx, "PutNextKey", func(c *conn) error {
		n, err := c.exec(insertKey+`SELECT ?,?,?,?,?,?,?,?,? WHERE EXISTS (SELECT 1 FROM signing_keys WHERE id = ? AND state = 'active')
			ON CONFLICT (algorithm) WHERE state = 'next' DO NOTHING`, append(column.KeyValues(k), active)...)
		stored = n == 1
		return err
	})
	return stored && err == nil, err
}

const retireKey = "UPDATE signing_keys SET state = 'retired', retired_at = ?1, expires_at = ?2 WHERE id = ?3 AND state = 'active'"

// PromoteKey implements storage.Keys.
func (s *Store) PromoteKey(ctx context.Context, from, to string, now, expires time.Time) error {
	spent := changed(storage.ErrSpent)
	return s.write(ctx, "PromoteKey", func(c *conn) error {
		if err := spent(c.exec(retireKey, column.Millis(now), column.Millis(expires), from)); err != nil {
			return err
		}
		return spent(
			c.exec("UPDATE signing_keys SET state = 'active', activated_at = ? WHERE id = ? AND state = 'next'",
				column.Millis(now), to),
		)
	})
}

// RetireKey implements storage.Keys.
func (s *Store) RetireKey(ctx context.Context, id string, now, expires time.Time) error {
	return s.write(ctx, "RetireKey", func(c *conn) error {
		return changed(storage.ErrSpent)(c.exec(`UPDATE signing_keys SET state = 'retired', retired_at = ?2, expires_at = ?3
			WHERE id = ?1 AND state IN ('active', 'next') AND EXISTS (SELECT 1 FROM signing_keys o WHERE o.state = 'active' AND o.id <> ?1)`,
			id, column.Millis(now), column.Millis(expires)))
	})
}

// RotateKey implements storage.KeyCustody.
func (s *Store) RotateKey(ctx context.Context, from string, next storage.SigningKey, now, expires time.Time) error {
	next.State = storage.KeyActive
	return s.write(ctx, "RotateKey", func(c *conn) error {
		err := changed(storage.ErrSpent)(
			c.exec(retireKey+" AND algorithm = ?4", column.Millis(now), column.Millis(expires), from, next.Algorithm),
		)
		if err != nil {
			return err
		}
		_, err = c.exec(insertKey+"VALUES (?,?,?,?,?,?,?,?,?)", column.KeyValues(next)...)
		return err
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

// ResealKey implements storage.KeyCustody.
func (s *Store) ResealKey(ctx context.Context, id string, old, sealed []byte) error {
	return s.write(ctx, "ResealKey", func(c *conn) error {
		return changed(storage.ErrSpent)(
			c.exec("UPDATE signing_keys SET private = ? WHERE id = ? AND private = ?", sealed, id, old),
		)
	})
}

// MoveFingerprint implements storage.KeyCustody.
func (s *Store) MoveFingerprint(ctx context.Context, from, to []byte) error {
	return s.write(ctx, "MoveFingerprint", func(c *conn) error {
		return changed(storage.ErrSpent)(
			c.exec("UPDATE settings SET value = ? WHERE name = 'fingerprint' AND value = ?", to, from),
		)
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

// ReplaceSharedKey implements storage.SharedKeys.
func (s *Store) ReplaceSharedKey(ctx context.Context, name string, old, sealed []byte) error {
	return s.write(ctx, "ReplaceSharedKey", func(c *conn) error {
		return changed(storage.ErrSpent)(
			c.exec("UPDATE settings SET value = ? WHERE name = 'key:' || ? AND value = ?", sealed, name, old),
		)
	})
}
