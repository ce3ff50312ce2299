package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// PutNextKey implements storage.Keys. The lock makes it wait for a running promotion, and then see
// that the active key is no longer active.
func (s *Store) PutNextKey(ctx context.Context, active string, k storage.SigningKey) (stored bool, err error) {
	k.State = storage.KeyNext
	err = s.do(ctx, "PutNextKey", func(ctx context.Context, q querier) error {
		n, err := exec(ctx, q, column.InsertKey+`SELECT $1::text, $2::text, $3::text, $4::bytea, $5::bytea, $6::bigint, $7::bigint, $8::bigint, $9::bigint
			FROM (SELECT 1 FROM signing_keys WHERE id = $10 AND state = 'active' FOR UPDATE) AS still
			ON CONFLICT (algorithm) WHERE state = 'next' DO NOTHING`, append(column.KeyValues(k), active)...)
		stored = n == 1
		return err
	})
	return stored && err == nil, err
}

// lockActive comes before a statement that must leave one key active. It waits for any
// concurrent rotation, so that the statement sees the result.
const lockActive = "SELECT id FROM signing_keys WHERE state = 'active' ORDER BY id FOR UPDATE"

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
