package portable

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const retireKey = `UPDATE signing_keys SET state = 'retired', retired_at = $1, expires_at = $2 WHERE id = $3 AND state = 'active'`

// keys implements storage.Keys and storage.KeyCustody, except for verbs that lock.
type keys struct{ db Engine }

// Keys implements storage.Keys.
func (s keys) Keys(ctx context.Context, now time.Time) (out []storage.SigningKey, err error) {
	err = s.db.Read(ctx, "Keys", func(c Conn) (err error) {
		out, err = Each(c, func(row Row) (storage.SigningKey, error) {
			var r column.KeyRow
			err := row.Scan(r.Dest()...)
			return r.Key(), err
		}, "SELECT "+column.KeyColumns+
			" FROM signing_keys WHERE expires_at IS NULL OR expires_at > $1 ORDER BY created_at, id",
			column.Millis(now))
		return err
	})
	return out, err
}

// PutFirstKey implements storage.Keys.
func (s keys) PutFirstKey(ctx context.Context, k storage.SigningKey) (stored bool, err error) {
	k.State = storage.KeyActive
	err = s.db.Write(ctx, "PutFirstKey", func(c Conn) error {
		n, err := c.Exec(
			column.InsertKey+"VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9) ON CONFLICT (algorithm) WHERE state = 'active' DO NOTHING",
			column.KeyValues(k)...)
		stored = n == 1
		return err
	})
	return stored && err == nil, err
}

// PromoteKey implements storage.Keys.
func (s keys) PromoteKey(ctx context.Context, from, to string, now, expires time.Time) error {
	spent := changed(storage.ErrSpent)
	return s.db.Transact(ctx, "PromoteKey", func(c Conn) error {
		if err := spent(c.Exec(retireKey, column.Millis(now), column.Millis(expires), from)); err != nil {
			return err
		}
		return spent(
			c.Exec(
				"UPDATE signing_keys SET state = 'active', activated_at = $1 WHERE id = $2 AND state = 'next'",
				column.Millis(now), to),
		)
	})
}

// RotateKey implements storage.KeyCustody.
func (s keys) RotateKey(ctx context.Context, from string, next storage.SigningKey, now, expires time.Time) error {
	next.State = storage.KeyActive
	return s.db.Transact(ctx, "RotateKey", func(c Conn) error {
		err := changed(storage.ErrSpent)(
			c.Exec(retireKey+" AND algorithm = $4", column.Millis(now), column.Millis(expires), from,
				next.Algorithm),
		)
		if err != nil {
			return err
		}
		_, err = c.Exec(column.InsertKey+"VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9)", column.KeyValues(next)...)
		return err
	})
}

// ResealKey implements storage.KeyCustody.
func (s keys) ResealKey(ctx context.Context, id string, old, sealed []byte) error {
	return s.db.Write(ctx, "ResealKey", func(c Conn) error {
		return changed(storage.ErrSpent)(
			c.Exec("UPDATE signing_keys SET private = $1 WHERE id = $2 AND private = $3", sealed, id, old),
		)
	})
}

// MoveFingerprint implements storage.KeyCustody.
func (s keys) MoveFingerprint(ctx context.Context, from, to []byte) error {
	return s.db.Write(ctx, "MoveFingerprint", func(c Conn) error {
		return changed(storage.ErrSpent)(
			c.Exec("UPDATE settings SET value = $1 WHERE name = 'fingerprint' AND value = $2", to, from),
		)
	})
}

// ReplaceSharedKey implements storage.SharedKeys.
func (s keys) ReplaceSharedKey(ctx context.Context, name string, old, sealed []byte) error {
	return s.db.Write(ctx, "ReplaceSharedKey", func(c Conn) error {
		return changed(storage.ErrSpent)(
			c.Exec("UPDATE settings SET value = $1 WHERE name = 'key:' || CAST($2 AS text) AND value = $3", sealed,
				name, old),
		)
	})
}
