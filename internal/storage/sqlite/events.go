package sqlite

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	eventsWaiting = "SELECT EXISTS (SELECT 1 FROM events WHERE taken_at IS NULL AND (leased_at IS NULL OR leased_at <= ?))"

	takeEvents = `UPDATE events SET leased_at = ?1 WHERE id IN (
	SELECT id FROM events WHERE taken_at IS NULL AND (leased_at IS NULL OR leased_at <= ?2)
	ORDER BY at, id LIMIT ?3) RETURNING id, at, name, fields`

	loggedEvents = "UPDATE events SET taken_at = ?1 WHERE id IN (SELECT value FROM json_each(?2))"
)

// TakeEvents implements storage.Events.
func (s *Store) TakeEvents(ctx context.Context, limit int, now time.Time) (out []storage.Event, err error) {
	ended := column.Millis(now.Add(-storage.EventLease))
	err = s.writeIf(ctx, "TakeEvents", eventsWaiting, []any{ended}, func(c *conn) (err error) {
		out, err = each(c, func(row scanner) (storage.Event, error) {
			var r column.EventRow
			err := row.Scan(r.Dest()...)
			return r.Event(), err
		}, takeEvents, column.Millis(now), ended, max(limit, 0))
		return err
	})
	column.SortEvents(out)
	return out, err
}

// LoggedEvents implements storage.Events.
func (s *Store) LoggedEvents(ctx context.Context, ids []string, now time.Time) error {
	return s.write(ctx, "LoggedEvents", func(c *conn) error {
		_, err := c.exec(loggedEvents, column.Millis(now), column.List(ids))
		return err
	})
}
