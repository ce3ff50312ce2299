package portable

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const putDelivery = `INSERT INTO outbox (` + column.DeliveryColumns + `, due_at, failed)
SELECT $1, id, $3, $4, $5, $6, 0, 0, '' FROM event_receivers WHERE id = $2 AND named_at > $7`

// outbox implements verbs of storage.Outbox.
type outbox struct{ db Engine }

// PutDelivery implements storage.Outbox.
func (s outbox) PutDelivery(ctx context.Context, d storage.Delivery) error {
	return s.db.Write(ctx, "PutDelivery", func(c Conn) error {
		return changed(storage.ErrNotFound)(c.Exec(putDelivery, d.ID, d.Receiver, d.Kind, d.Subject,
			string(d.Detail), column.Millis(d.At), column.Named(d.At)))
	})
}

// SettleDelivery implements storage.Outbox.
func (s outbox) SettleDelivery(ctx context.Context, d storage.Delivery, again time.Time, failed string) error {
	return s.db.Write(ctx, "SettleDelivery", func(c Conn) error {
		if again.IsZero() {
			return changed(storage.ErrSpent)(
				c.Exec("DELETE FROM outbox WHERE id = $1 AND tries = $2", d.ID, d.Tries))
		}
		return changed(storage.ErrSpent)(
			c.Exec("UPDATE outbox SET held_until = NULL, due_at = $1, failed = $2 WHERE id = $3 AND tries = $4",
				column.Millis(again), failed, d.ID, d.Tries))
	})
}

// Backlogs implements storage.Outbox.
func (s outbox) Backlogs(ctx context.Context, now time.Time) (out []storage.Backlog, err error) {
	err = s.db.Read(ctx, "Backlogs", func(c Conn) (err error) {
		out, err = Each(c, func(row Row) (storage.Backlog, error) {
			var r column.BacklogRow
			err := row.Scan(r.Dest()...)
			return r.Backlog(), err
		}, column.Backlogs("$1"), column.Named(now))
		return err
	})
	return out, err
}
