package sqlite

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	nameReceiver = `INSERT INTO event_receivers (id, kinds, named_at) VALUES (?1, ?2, ?3)
ON CONFLICT (id) DO UPDATE SET kinds = excluded.kinds, named_at = max(named_at, excluded.named_at)`

	takeDelivery = `UPDATE outbox SET held_until = ?3, tries = tries + 1
WHERE seq = (SELECT min(seq) FROM outbox WHERE receiver = ?1) AND due_at <= ?2 AND (held_until IS NULL OR held_until <= ?2)
RETURNING ` + column.DeliveryColumns
)

// NameReceivers implements storage.Outbox.
func (s *Store) NameReceivers(ctx context.Context, all []storage.EventReceiver, now time.Time) error {
	return s.write(ctx, "NameReceivers", func(c *conn) error {
		for _, r := range all {
			if _, err := c.exec(nameReceiver, r.ID, column.List(r.Kinds), column.Millis(now)); err != nil {
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
	waiting := false
	const some = "SELECT EXISTS (SELECT 1 FROM outbox WHERE receiver = ? AND due_at <= ?)"
	err := s.writeIf(ctx, "TakeDelivery", some, []any{receiver, column.Millis(now)}, func(c *conn) error {
		waiting = true
		r = column.DeliveryRow{}
		return c.one(r.Dest(), takeDelivery, receiver, column.Millis(now), column.Millis(until))
	})
	if err == nil && !waiting {
		err = storage.ErrNotFound
	}
	return r.Delivery(), err
}
