package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	nameReceiver = `INSERT INTO event_receivers (id, kinds, named_at) VALUES ($1, $2, $3)
ON CONFLICT (id) DO UPDATE SET kinds = excluded.kinds, named_at = greatest(event_receivers.named_at, excluded.named_at)`

	putDelivery = `INSERT INTO outbox (` + column.DeliveryColumns + `, due_at, failed)
SELECT $1, id, $3, $4, $5, $6, 0, 0, '' FROM event_receivers WHERE id = $2 AND named_at > $7`

	// takeDelivery waits for a concurrent call for the same delivery, and then finds it held.
	takeDelivery = `UPDATE outbox SET held_until = $3, tries = tries + 1
WHERE seq = (SELECT min(seq) FROM outbox WHERE receiver = $1) AND due_at <= $2 AND (held_until IS NULL OR held_until <= $2)
RETURNING ` + column.DeliveryColumns
)

// NameReceivers implements storage.Outbox.
func (s *Store) NameReceivers(ctx context.Context, receivers []storage.EventReceiver, now time.Time) error {
	return s.tx(ctx, "NameReceivers", func(ctx context.Context, q querier) error {
		for _, r := range receivers {
			if _, err := exec(ctx, q, nameReceiver, r.ID, column.List(r.Kinds), column.Millis(now)); err != nil {
				return err
			}
		}
		return nil
	})
}

// PutDelivery implements storage.Outbox.
func (s *Store) PutDelivery(ctx context.Context, d storage.Delivery) error {
	return s.do(ctx, "PutDelivery", func(ctx context.Context, q querier) error {
		return changed(storage.ErrNotFound)(exec(ctx, q, putDelivery, d.ID, d.Receiver, d.Kind, d.Subject,
			string(d.Detail), column.Millis(d.At), column.Named(d.At)))
	})
}

// TakeDelivery implements storage.Outbox.
func (s *Store) TakeDelivery(
	ctx context.Context, receiver string, now, until time.Time,
) (storage.Delivery, error) {
	var r column.DeliveryRow
	err := s.do(ctx, "TakeDelivery", func(ctx context.Context, q querier) error {
		r = column.DeliveryRow{}
		return one(ctx, q, r.Dest(), takeDelivery, receiver, column.Millis(now), column.Millis(until))
	})
	return r.Delivery(), err
}

// SettleDelivery implements storage.Outbox.
func (s *Store) SettleDelivery(ctx context.Context, d storage.Delivery, again time.Time, failed string) error {
	return s.do(ctx, "SettleDelivery", func(ctx context.Context, q querier) error {
		if again.IsZero() {
			return changed(storage.ErrSpent)(
				exec(ctx, q, "DELETE FROM outbox WHERE id = $1 AND tries = $2", d.ID, d.Tries))
		}
		return changed(storage.ErrSpent)(
			exec(ctx, q, "UPDATE outbox SET held_until = NULL, due_at = $1, failed = $2 WHERE id = $3 AND tries = $4",
				column.Millis(again), failed, d.ID, d.Tries))
	})
}

// Backlogs implements storage.Outbox.
func (s *Store) Backlogs(ctx context.Context, now time.Time) (out []storage.Backlog, err error) {
	err = s.do(ctx, "Backlogs", func(ctx context.Context, q querier) (err error) {
		out, err = each(ctx, q, func(row pgx.CollectableRow) (storage.Backlog, error) {
			var r column.BacklogRow
			err := row.Scan(r.Dest()...)
			return r.Backlog(), err
		}, column.Backlogs("$1"), column.Named(now))
		return err
	})
	return out, err
}
