package sqlite

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// SpendProof implements storage.Proofs.
func (s *Store) SpendProof(ctx context.Context, purpose, id string, expires time.Time) error {
	return s.verb(ctx, "SpendProof", s.writer.doFleeting, func(c *conn) error {
		return changed(storage.ErrSpent)(
			c.exec("INSERT INTO spent (purpose, id, expires_at) VALUES (?,?,?) ON CONFLICT DO NOTHING",
				purpose, id, column.Millis(expires)))
	})
}

const recordFailure = `INSERT INTO failures (key, count, first_at, last_at, expires_at) VALUES (?1, 1, ?2, ?2, ?2 + ?3)
ON CONFLICT (key) DO UPDATE SET
	count = CASE WHEN first_at + ?3 <= ?2 THEN 1 ELSE count + 1 END,
	first_at = CASE WHEN first_at + ?3 <= ?2 THEN ?2 ELSE first_at END,
	last_at = ?2,
	expires_at = max(expires_at, ?2 + ?3)
RETURNING count`

// RecordFailure implements storage.Failures.
func (s *Store) RecordFailure(
	ctx context.Context, key storage.Hash, now time.Time, window time.Duration,
) (n int, err error) {
	err = s.write(ctx, "RecordFailure", func(c *conn) error {
		return c.one([]any{&n}, recordFailure, key[:], column.Millis(now), window.Milliseconds())
	})
	return n, err
}

const takeTry = `INSERT INTO failures (key, count, first_at, last_at, expires_at)
SELECT ?1, 1, ?2, ?2, ?2 + ?3 WHERE ?4 = 0 OR EXISTS (SELECT 1 FROM failures WHERE key = ?1 AND first_at + ?3 > ?2)
ON CONFLICT (key) DO UPDATE SET
	count = ?4 + 1,
	first_at = CASE WHEN first_at + ?3 <= ?2 THEN ?2 ELSE first_at END,
	last_at = ?2,
	expires_at = max(expires_at, ?2 + ?3)
WHERE CASE WHEN first_at + ?3 <= ?2 THEN 0 ELSE count END = ?4`

// TakeTry implements storage.Failures.
func (s *Store) TakeTry(
	ctx context.Context, key storage.Hash, seen int, now time.Time, window time.Duration,
) error {
	return s.write(ctx, "TakeTry", func(c *conn) error {
		return changed(storage.ErrChanged)(
			c.exec(takeTry, key[:], column.Millis(now), window.Milliseconds(), seen))
	})
}
