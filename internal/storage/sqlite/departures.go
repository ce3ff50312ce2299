package sqlite

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// PutDeparture implements storage.Departures.
func (s *Store) PutDeparture(ctx context.Context, d storage.Departure) error {
	return s.write(ctx, "PutDeparture", func(c *conn) error {
		return changed(storage.ErrExists)(
			c.exec("INSERT INTO departures (key, sealed, expires_at) VALUES (?,?,?) ON CONFLICT DO NOTHING",
				d.Key[:], column.Bytes(d.Sealed), column.Millis(d.ExpiresAt)))
	})
}

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

// SessionEnd implements storage.UpstreamEnds.
func (s *Store) SessionEnd(
	ctx context.Context, session storage.Hash, now time.Time,
) (connector, reason string, err error) {
	err = s.read(ctx, "SessionEnd", func(c *conn) error {
		return c.one([]any{&connector, &reason},
			"SELECT connector, reason FROM farewells WHERE hash = ? AND expires_at > ?",
			session[:], column.Millis(now))
	})
	return connector, reason, err
}
