package postgres

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// spendProof does not wait for its commit. Its setting only applies to its own transaction.
const spendProof = `INSERT INTO spent (purpose, id, expires_at) SELECT $1::text, $2::text, $3::bigint
WHERE set_config('synchronous_commit', 'off', true) = 'off' ON CONFLICT DO NOTHING`

// SpendProof implements storage.Proofs.
func (s *Store) SpendProof(ctx context.Context, purpose, id string, expires time.Time) error {
	return s.do(ctx, "SpendProof", func(ctx context.Context, q querier) error {
		return changed(storage.ErrSpent)(exec(ctx, q, spendProof, purpose, id, column.Millis(expires)))
	})
}

const recordFailure = `INSERT INTO failures AS f (key, count, first_at, last_at, expires_at)
VALUES ($1, 1, $2, $2, $2 + $3::bigint)
ON CONFLICT (key) DO UPDATE SET
	count = CASE WHEN f.first_at + $3 <= $2 THEN 1 ELSE f.count + 1 END,
	first_at = CASE WHEN f.first_at + $3 <= $2 THEN $2 ELSE f.first_at END,
	last_at = $2,
	expires_at = greatest(f.expires_at, $2 + $3)
RETURNING count`

// RecordFailure implements storage.Failures.
func (s *Store) RecordFailure(
	ctx context.Context, key storage.Hash, now time.Time, window time.Duration,
) (n int, err error) {
	err = s.do(ctx, "RecordFailure", func(ctx context.Context, q querier) error {
		return one(ctx, q, []any{&n}, recordFailure, key[:], column.Millis(now), window.Milliseconds())
	})
	return n, err
}

const takeTry = `INSERT INTO failures AS f (key, count, first_at, last_at, expires_at)
SELECT $1, 1, $2::bigint, $2::bigint, $2::bigint + $3::bigint
WHERE $4 = 0 OR EXISTS (SELECT 1 FROM failures WHERE key = $1 AND first_at + $3::bigint > $2)
ON CONFLICT (key) DO UPDATE SET
	count = $4 + 1,
	first_at = CASE WHEN f.first_at + $3 <= $2 THEN $2 ELSE f.first_at END,
	last_at = $2,
	expires_at = greatest(f.expires_at, $2 + $3)
WHERE CASE WHEN f.first_at + $3 <= $2 THEN 0 ELSE f.count END = $4`

// TakeTry implements storage.Failures.
func (s *Store) TakeTry(
	ctx context.Context, key storage.Hash, seen int, now time.Time, window time.Duration,
) error {
	return s.do(ctx, "TakeTry", func(ctx context.Context, q querier) error {
		return changed(storage.ErrChanged)(
			exec(ctx, q, takeTry, key[:], column.Millis(now), window.Milliseconds(), seen))
	})
}
