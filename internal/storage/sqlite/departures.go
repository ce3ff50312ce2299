package sqlite

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// TakeDeparture implements storage.Departures: one of N callers deletes the row.
func (s *Store) TakeDeparture(ctx context.Context, key storage.Hash, now time.Time) (storage.Departure, error) {
	var sealed []byte
	var expires int64
	err := s.write(ctx, "TakeDeparture", func(c *conn) error {
		return c.one([]any{&sealed, &expires}, "DELETE FROM departures WHERE key = ? RETURNING sealed, expires_at",
			key[:])
	})
	if err != nil {
		return storage.Departure{}, err
	}
	if expires <= column.Millis(now) { // the row is gone: the transaction commits
		err = wrap("take departure", storage.ErrExpired)
	}
	return storage.Departure{Key: key, Sealed: sealed, ExpiresAt: column.Time(expires)}, err
}

// AbandonedDepartures implements storage.Departures.
func (s *Store) AbandonedDepartures(
	ctx context.Context, now time.Time, limit int,
) (out []storage.Departure, err error) {
	const some = "SELECT EXISTS (SELECT 1 FROM departures WHERE expires_at <= ?)"
	err = s.writeIf(ctx, "AbandonedDepartures", some, []any{column.Millis(now)}, func(c *conn) (err error) {
		out, err = each(c, func(row scanner) (storage.Departure, error) {
			var key, sealed []byte
			var expires int64
			if err := row.Scan(&key, &sealed, &expires); err != nil {
				return storage.Departure{}, err
			}
			hash, err := column.Hash(key)
			return storage.Departure{Key: hash, Sealed: sealed, ExpiresAt: column.Time(expires)}, err
		}, `DELETE FROM departures WHERE key IN (SELECT key FROM departures WHERE expires_at <= ? LIMIT ?) RETURNING key, sealed, expires_at`,
			column.Millis(now), max(limit, 0))
		return err
	})
	return out, err
}
