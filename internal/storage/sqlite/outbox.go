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

	putDelivery = `INSERT INTO outbox (` + column.DeliveryColumns + `, due_at, failed)
SELECT ?1, id, ?3, ?4, ?5, ?6, 0, 0, '' FROM event_receivers WHERE id = ?2 AND named_at > ?7`

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

// PutDelivery implements storage.Outbox.
func (s *Store) PutDelivery(ctx context.Context, d storage.Delivery) error {
	return s.write(ctx, "PutDelivery", func(c *conn) error {
		return changed(storage.ErrNotFound)(c.exec(putDelivery, d.ID, d.Receiver, d.Kind, d.Subject, string(d.Detail),
			column.Millis(d.At), column.Named(d.At)))
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

// SettleDelivery implements storage.Outbox.
func (s *Store) SettleDelivery(ctx context.Context, d storage.Delivery, again time.Time, failed string) error {
	return s.write(ctx, "SettleDelivery", func(c *conn) error {
		if again.IsZero() {
			return changed(storage.ErrSpent)(c.exec("DELETE FROM outbox WHERE id = ? AND tries = ?", d.ID, d.Tries))
		}
		return changed(storage.ErrSpent)(
			c.exec("UPDATE outbox SET held_until = NULL, due_at = ?, failed = ? WHERE id = ? AND tries = ?",
				column.Millis(again), failed, d.ID, d.Tries))
	})
}

// Backlogs implements storage.Outbox.
func (s *Store) Backlogs(ctx context.Context, now time.Time) (out []storage.Backlog, err error) {
	err = s.read(ctx, "Backlogs", func(c *conn) (err error) {
		out, err = each(c, func(row scanner) (storage.Backlog, error) {
			var r column.BacklogRow
			err := row.Scan(r.Dest()...)
			return r.Backlog(), err
		}, column.Backlogs("?"), column.Named(now))
		return err
	})
	return out, err
}
