package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// PutDeparture implements storage.Departures.
func (s *Store) PutDeparture(ctx context.Context, d storage.Departure) error {
	return s.do(ctx, "PutDeparture", func(ctx context.Context, q querier) error {
		return changed(storage.ErrExists)(
			exec(ctx, q, "INSERT INTO departures (key, sealed, expires_at) VALUES ($1,$2,$3) ON CONFLICT DO NOTHING",
				d.Key[:], column.Bytes(d.Sealed), column.Millis(d.ExpiresAt)))
	})
}

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

// SessionEnd implements storage.UpstreamEnds.
func (s *Store) SessionEnd(
	ctx context.Context, session storage.Hash, now time.Time,
) (connector, reason string, err error) {
	err = s.do(ctx, "SessionEnd", func(ctx context.Context, q querier) error {
		return one(ctx, q, []any{&connector, &reason},
			"SELECT connector, reason FROM farewells WHERE hash = $1 AND expires_at > $2",
			session[:], column.Millis(now))
	})
	return connector, reason, err
}
