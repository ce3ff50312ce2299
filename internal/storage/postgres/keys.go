package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// Keys implements storage.Keys.
func (s *Store) Keys(ctx context.Context, now time.Time) (out []storage.SigningKey, err error) {
	err = s.do(ctx, "Keys", func(ctx context.Context, q querier) (err error) {
		out, err = each(ctx, q, func(row pgx.CollectableRow) (storage.SigningKey, error) {
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

const insertKey = "INSERT INTO signing_keys (" + column.KeyColumns + ") "

// PutFirstKey implements storage.Keys.
func (s *Store) PutFirstKey(ctx context.Context, k storage.SigningKey) (stored bool, err error) {
	k.State = storage.KeyActive
	err = s.do(ctx, "PutFirstKey", func(ctx context.Context, q querier) error {
		n, err := exec(ctx, q,
			insertKey+"VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9) ON CONFLICT (algorithm) WHERE state = 'active' DO NOTHING",
			column.KeyValues(k)...)
		stored = n == 1
		return err
	})
	return stored && err == nil, err
}

// PutNextKey implements storage.Keys. The lock makes it wait for a running promotion, and then see
// that the active key is no longer active.
func (s *Store) PutNextKey(ctx context.Context, active string, k storage.SigningKey) (stored bool, err error) {
	k.State = storage.KeyNext
	err = s.do(ctx, "PutNextKey", func(ctx context.Context, q querier) error {
		n, err := exec(ctx, q, insertKey+`SELECT $1::text, $2::text, $3::text, $4::bytea, $5::bytea, $6::bigint, $7::bigint, $8::bigint, $9::bigint
			FROM (SELECT 1 FROM signing_keys WHERE id = $10 AND state = 'active' FOR UPDATE) AS still
			ON CONFLICT (algorithm) WHERE state = 'next' DO NOTHING`, append(column.KeyValues(k), active)...)
		stored = n == 1
		return err
	})
	return stored && err == nil, err
}

const (
	retireKey = `UPDATE signing_keys SET state = 'retired', retired_at = $1, expires_at = $2 WHERE id = $3 AND state = 'active'`
	// lockActive comes before a statement that must leave one key active. It waits for any
	// concurrent rotation, so that the statement sees the result.
	lockActive = "SELECT id FROM signing_keys WHERE state = 'active' ORDER BY id FOR UPDATE"
)

// PromoteKey implements storage.Keys.
func (s *Store) PromoteKey(ctx context.Context, from, to string, now, expires time.Time) error {
	spent := changed(storage.ErrSpent)
	return s.tx(ctx, "PromoteKey", func(ctx context.Context, q querier) error {
		if err := spent(exec(ctx, q, retireKey, column.Millis(now), column.Millis(expires), from)); err != nil {
			return err
		}
		return spent(
			exec(ctx, q,
				"UPDATE signing_keys SET state = 'active', activated_at = $1 WHERE id = $2 AND state = 'next'",
				column.Millis(now), to),
		)
	})
}

// RetireKey implements storage.Keys.
func (s *Store) RetireKey(ctx context.Context, id string, now, expires time.Time) error {
	return s.tx(ctx, "RetireKey", func(ctx context.Context, q querier) error {
		if _, err := q.Exec(ctx, lockActive); err != nil {
			return err
		}
		return changed(storage.ErrSpent)(exec(ctx, q, `UPDATE signing_keys SET state = 'retired', retired_at = $2, expires_at = $3
			WHERE id = $1 AND state IN ('active', 'next') AND EXISTS (SELECT 1 FROM signing_keys o WHERE o.state = 'active' AND o.id <> $1)`,
			id, column.Millis(now), column.Millis(expires)))
	})
}

// RotateKey implements storage.KeyCustody.
func (s *Store) RotateKey(ctx context.Context, from string, next storage.SigningKey, now, expires time.Time) error {
	next.State = storage.KeyActive
	return s.tx(ctx, "RotateKey", func(ctx context.Context, q querier) error {
		err := changed(storage.ErrSpent)(
			exec(ctx, q, retireKey+" AND algorithm = $4", column.Millis(now), column.Millis(expires), from,
				next.Algorithm),
		)
		if err != nil {
			return err
		}
		_, err = exec(ctx, q, insertKey+"VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9)", column.KeyValues(next)...)
		return err
	})
}

// RevokeKey implements storage.KeyCustody.
func (s *Store) RevokeKey(ctx context.Context, id string) error {
	return s.tx(ctx, "RevokeKey", func(ctx context.Context, q querier) error {
		if _, err := q.Exec(ctx, lockActive); err != nil {
			return err
		}
		n, err := exec(ctx, q, `DELETE FROM signing_keys WHERE id = $1 AND NOT (state = 'active'
			AND NOT EXISTS (SELECT 1 FROM signing_keys o WHERE o.state = 'active' AND o.id <> $1))`, id)
		if err != nil || n > 0 {
			return err
		}
		if err := one(ctx, q, []any{&n}, "SELECT 1 FROM signing_keys WHERE id = $1", id); err != nil {
			return err
		}
		return storage.ErrSpent
	})
}

// ResealKey implements storage.KeyCustody.
func (s *Store) ResealKey(ctx context.Context, id string, old, sealed []byte) error {
	return s.do(ctx, "ResealKey", func(ctx context.Context, q querier) error {
		return changed(storage.ErrSpent)(
			exec(ctx, q, "UPDATE signing_keys SET private = $1 WHERE id = $2 AND private = $3", sealed, id, old),
		)
	})
}

// MoveFingerprint implements storage.KeyCustody.
func (s *Store) MoveFingerprint(ctx context.Context, from, to []byte) error {
	return s.do(ctx, "MoveFingerprint", func(ctx context.Context, q querier) error {
		return changed(storage.ErrSpent)(
			exec(ctx, q, "UPDATE settings SET value = $1 WHERE name = 'fingerprint' AND value = $2", to, from),
		)
	})
}

// SharedKey implements storage.SharedKeys.
func (s *Store) SharedKey(ctx context.Context, name string, sealed []byte) (out []byte, err error) {
	err = s.do(ctx, "SharedKey", func(ctx context.Context, q querier) error {
		if sealed != nil {
			if _, err := q.Exec(ctx,
				"INSERT INTO settings (name, value) VALUES ('key:' || $1::text, $2) ON CONFLICT DO NOTHING", name,
				sealed); err != nil {
				return err
			}
		}
		err := one(ctx, q, []any{&out}, "SELECT value FROM settings WHERE name = 'key:' || $1::text", name)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	return out, err
}

// ReplaceSharedKey implements storage.SharedKeys.
func (s *Store) ReplaceSharedKey(ctx context.Context, name string, old, sealed []byte) error {
	return s.do(ctx, "ReplaceSharedKey", func(ctx context.Context, q querier) error {
		return changed(storage.ErrSpent)(
			exec(ctx, q, "UPDATE settings SET value = $1 WHERE name = 'key:' || $2::text AND value = $3", sealed,
				name, old),
		)
	})
}
