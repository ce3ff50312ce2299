package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const takeEvents = `UPDATE events SET leased_at = $1 WHERE id IN (
	SELECT id FROM events WHERE taken_at IS NULL AND (leased_at IS NULL OR leased_at <= $2)
	ORDER BY at, id LIMIT $3 FOR UPDATE SKIP LOCKED) RETURNING id, at, name, fields`

// TakeEvents implements storage.Events. It skips rows that another replica is taking.
func (s *Store) TakeEvents(ctx context.Context, limit int, now time.Time) (out []storage.Event, err error) {
	err = s.do(ctx, "TakeEvents", func(ctx context.Context, q querier) (err error) {
		out, err = each(ctx, q, event, takeEvents, column.Millis(now),
			column.Millis(now.Add(-storage.EventLease)), max(limit, 0))
		return err
	})
	column.SortEvents(out)
	return out, err
}

// LoggedEvents implements storage.Events.
func (s *Store) LoggedEvents(ctx context.Context, ids []string, now time.Time) error {
	return s.do(ctx, "LoggedEvents", func(ctx context.Context, q querier) error {
		_, err := q.Exec(ctx, "UPDATE events SET taken_at = $1 WHERE id = ANY($2)", column.Millis(now), ids)
		return err
	})
}

func event(row pgx.CollectableRow) (storage.Event, error) {
	var r column.EventRow
	err := row.Scan(r.Dest()...)
	return r.Event(), err
}
