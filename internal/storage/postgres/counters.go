package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// Spend implements storage.Once.
func (s *Store) Spend(ctx context.Context, purpose, id string, expires time.Time) error {
	return s.do(ctx, "Spend", func(ctx context.Context, q querier) error {
		return spend(ctx, q, storage.Use{Purpose: purpose, ID: id, Expires: expires})
	})
}

// spendProof does not wait for its commit. Its setting only applies to its own transaction.
const spendProof = `INSERT INTO spent (purpose, id, expires_at) SELECT $1::text, $2::text, $3::bigint
WHERE set_config('synchronous_commit', 'off', true) = 'off' ON CONFLICT DO NOTHING`

// SpendProof implements storage.Proofs.
func (s *Store) SpendProof(ctx context.Context, purpose, id string, expires time.Time) error {
	return s.do(ctx, "SpendProof", func(ctx context.Context, q querier) error {
		return changed(storage.ErrSpent)(exec(ctx, q, spendProof, purpose, id, column.Millis(expires)))
	})
}

func spend(ctx context.Context, q querier, u storage.Use) error {
	return changed(storage.ErrSpent)(
		exec(ctx, q, "INSERT INTO spent (purpose, id, expires_at) VALUES ($1,$2,$3) ON CONFLICT DO NOTHING",
			u.Purpose, u.ID, column.Millis(u.Expires)))
}

const lease = `INSERT INTO settings (name, value, expires_at) VALUES ($1, $2, $4)
ON CONFLICT (name) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at
	WHERE settings.value = excluded.value OR settings.expires_at <= $3`

// Lease implements storage.Leases. It uses a row and not an advisory lock, because a pooler gives
// each transaction another session.
func (s *Store) Lease(ctx context.Context, task, holder string, now, until time.Time) (held bool, err error) {
	err = s.do(ctx, "Lease", func(ctx context.Context, q querier) error {
		n, err := exec(ctx, q, lease, "lease:"+task, []byte(holder), column.Millis(now), column.Millis(until))
		held = n > 0
		return err
	})
	return held, err
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

// FailureCount implements storage.Failures.
func (s *Store) FailureCount(
	ctx context.Context, key storage.Hash, now time.Time, window time.Duration,
) (n int, last time.Time, err error) {
	err = s.do(ctx, "FailureCount", func(ctx context.Context, q querier) error {
		var at int64
		err := one(ctx, q, []any{&n, &at},
			"SELECT count, last_at FROM failures WHERE key = $1 AND first_at + $2::bigint > $3",
			key[:], window.Milliseconds(), column.Millis(now))
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err == nil {
			last = column.Time(at)
		}
		return err
	})
	return n, last, err
}

// ClearFailures implements storage.Failures.
func (s *Store) ClearFailures(ctx context.Context, key storage.Hash) error {
	return s.do(ctx, "ClearFailures", func(ctx context.Context, q querier) error {
		_, err := q.Exec(ctx, "DELETE FROM failures WHERE key = $1", key[:])
		return err
	})
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

// ReturnTry implements storage.Failures.
func (s *Store) ReturnTry(ctx context.Context, key storage.Hash) error {
	return s.do(ctx, "ReturnTry", func(ctx context.Context, q querier) error {
		_, err := q.Exec(ctx, "UPDATE failures SET count = count - 1 WHERE key = $1 AND count > 0", key[:])
		return err
	})
}
