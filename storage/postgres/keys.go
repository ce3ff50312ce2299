package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/storage/internal/column"
)

// Keys implements storage.Keys.
func (s *Store) Keys(ctx context.Context, now time.Time) (out []storage.SigningKey, err error) {
	err = s.do(ctx, "keys", func(ctx context.Context, q querier) (err error) {
		out, err = each(ctx, q, func(row pgx.CollectableRow) (storage.SigningKey, error) {
			var r column.KeyRow
			err := row.Scan(r.Dest()...)
			return r.Key(), err
		}, "SELECT "+column.KeyColumns+" FROM signing_keys WHERE expires_at IS NULL OR expires_at > $1 ORDER BY created_at, id", column.Millis(now))
		return err
	})
	return out, err
}

const insertKey = "INSERT INTO signing_keys (" + column.KeyColumns + ") VALUES ($1,$2,$3,$4,$5,$6,$7,$8) "

// PutFirstKey implements storage.Keys.
func (s *Store) PutFirstKey(ctx context.Context, k storage.SigningKey) (stored bool, err error) {
	k.State = storage.KeyActive
	err = s.do(ctx, "put first key", func(ctx context.Context, q querier) error {
		n, err := exec(ctx, q, insertKey+"ON CONFLICT (algorithm) WHERE state = 'active' DO NOTHING", column.KeyValues(k)...)
		stored = n == 1
		return err
	})
	return stored && err == nil, err
}

// RotateKey implements storage.Keys.
func (s *Store) RotateKey(ctx context.Context, from string, next storage.SigningKey, now, expires time.Time) error {
	next.State = storage.KeyActive
	return s.tx(ctx, "rotate key", func(ctx context.Context, q querier) error {
		err := changed(storage.ErrSpent)(exec(ctx, q, `UPDATE signing_keys SET state = 'retired', retired_at = $1, expires_at = $2
			WHERE id = $3 AND algorithm = $4 AND state = 'active'`, column.Millis(now), column.Millis(expires), from, next.Algorithm))
		if err != nil {
			return err
		}
		return changed(storage.ErrExists)(exec(ctx, q, insertKey+`ON CONFLICT (id) DO UPDATE SET state = 'active'
			WHERE signing_keys.state = 'next'`, column.KeyValues(next)...))
	})
}
