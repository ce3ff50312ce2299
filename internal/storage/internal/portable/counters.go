package portable

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const lease = `INSERT INTO settings (name, value, expires_at) VALUES ($1, $2, $4)
ON CONFLICT (name) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at
	WHERE settings.value = excluded.value OR settings.expires_at <= $3`

// counters implements verbs of storage.Once, storage.Leases and storage.Failures.
type counters struct{ db Engine }

// Spend implements storage.Once.
func (s counters) Spend(ctx context.Context, purpose, id string, expires time.Time) error {
	return s.db.Write(ctx, "Spend", func(c Conn) error {
		return Spend(c, storage.Use{Purpose: purpose, ID: id, Expires: expires})
	})
}

// Spend uses up an identifier as a part of another verb.
func Spend(c Conn, u storage.Use) error {
	return changed(storage.ErrSpent)(
		c.Exec("INSERT INTO spent (purpose, id, expires_at) VALUES ($1,$2,$3) ON CONFLICT DO NOTHING",
			u.Purpose, u.ID, column.Millis(u.Expires)))
}

// Lease implements storage.Leases. It uses a row and not an advisory lock, because a pooler gives
// each transaction another session.
func (s counters) Lease(ctx context.Context, task, holder string, now, until time.Time) (held bool, err error) {
	err = s.db.Write(ctx, "Lease", func(c Conn) error {
		n, err := c.Exec(lease, "lease:"+task, []byte(holder), column.Millis(now), column.Millis(until))
		held = n > 0
		return err
	})
	return held, err
}

// FailureCount implements storage.Failures.
func (s counters) FailureCount(
	ctx context.Context, key storage.Hash, now time.Time, window time.Duration,
) (n int, last time.Time, err error) {
	err = s.db.Read(ctx, "FailureCount", func(c Conn) error {
		var at int64
		err := c.One([]any{&n, &at},
			"SELECT count, last_at FROM failures WHERE key = $1 AND first_at + CAST($2 AS bigint) > $3",
			key[:], window.Milliseconds(), column.Millis(now))
		if errors.Is(err, storage.ErrNotFound) {
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
func (s counters) ClearFailures(ctx context.Context, key storage.Hash) error {
	return s.db.Write(ctx, "ClearFailures", func(c Conn) error {
		_, err := c.Exec("DELETE FROM failures WHERE key = $1", key[:])
		return err
	})
}

// ReturnTry implements storage.Failures.
func (s counters) ReturnTry(ctx context.Context, key storage.Hash) error {
	return s.db.Write(ctx, "ReturnTry", func(c Conn) error {
		_, err := c.Exec("UPDATE failures SET count = count - 1 WHERE key = $1 AND count > 0", key[:])
		return err
	})
}
