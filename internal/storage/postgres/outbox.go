package postgres

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	nameReceiver = `INSERT INTO event_receivers (id, kinds, named_at) VALUES ($1, $2, $3)
ON CONFLICT (id) DO UPDATE SET kinds = excluded.kinds, named_at = greatest(event_receivers.named_at, excluded.named_at)`

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
