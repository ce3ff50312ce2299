package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// TakeDeparture implements storage.Departures: one of N callers deletes the row.
func (s *Store) TakeDeparture(ctx context.Context, key storage.Hash, now time.Time) (out storage.Departure, err error) {
	err = s.do(ctx, "TakeDeparture", func(ctx context.Context, q querier) error {
		var sealed []byte
		var expires int64
		err := one(ctx, q, []any{&sealed, &expires},
			"DELETE FROM departures WHERE key = $1 RETURNING sealed, expires_at", key[:])
		if err != nil {
			return err
		}
		out = storage.Departure{Key: key, Sealed: sealed, ExpiresAt: column.Time(expires)}
		if expires <= column.Millis(now) {
			return storage.ErrExpired
		}
		return nil
	})
	return out, err
}

// AbandonedDepartures implements storage.Departures. It skips rows that another replica is taking.
func (s *Store) AbandonedDepartures(
	ctx context.Context, now time.Time, limit int,
) (out []storage.Departure, err error) {
	err = s.do(ctx, "AbandonedDepartures", func(ctx context.Context, q querier) (err error) {
		out, err = each(ctx, q, func(row pgx.CollectableRow) (storage.Departure, error) {
			var key, sealed []byte
			var expires int64
			if err := row.Scan(&key, &sealed, &expires); err != nil {
				return storage.Departure{}, err
			}
			hash, err := column.Hash(key)
			return storage.Departure{Key: hash, Sealed: sealed, ExpiresAt: column.Time(expires)}, err
		}, `DELETE FROM departures WHERE key IN (SELECT key FROM departures WHERE expires_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)
			RETURNING key, sealed, expires_at`, column.Millis(now), max(limit, 0))
		return err
	})
	return out, err
}
