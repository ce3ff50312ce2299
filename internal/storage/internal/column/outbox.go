package column

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// DeliveryColumns are the columns that DeliveryRow reads.
const DeliveryColumns = "id, receiver, kind, subject, detail, at, tries"

// DeliveryRow reads DeliveryColumns.
type DeliveryRow struct {
	d      storage.Delivery
	detail string
	at     int64
}

func (r *DeliveryRow) Dest() []any {
	return []any{&r.d.ID, &r.d.Receiver, &r.d.Kind, &r.d.Subject, &r.detail, &r.at, &r.d.Tries}
}

func (r *DeliveryRow) Delivery() storage.Delivery {
	d := r.d
	d.Detail, d.At = []byte(r.detail), Time(r.at)
	return d
}

// Backlogs returns the query for the queue of each receiver. It includes receivers without
// deliveries that were named after a time, the parameter.
func Backlogs(parameter string) string {
	return `SELECT r.id, (SELECT count(*) FROM outbox o WHERE o.receiver = r.id), w.at, w.tries, w.failed
FROM (SELECT id FROM event_receivers WHERE named_at > ` + parameter + ` UNION SELECT receiver FROM outbox) r
LEFT JOIN outbox w ON w.seq = (SELECT min(seq) FROM outbox o WHERE o.receiver = r.id) ORDER BY r.id`
}

// BacklogRow reads Backlogs.
type BacklogRow struct {
	b         storage.Backlog
	at, tries *int64
	failed    *string
}

func (r *BacklogRow) Dest() []any {
	return []any{&r.b.Receiver, &r.b.Waiting, &r.at, &r.tries, &r.failed}
}

func (r *BacklogRow) Backlog() storage.Backlog {
	b := r.b
	b.Oldest, b.Failed = OptTime(r.at), OptText(r.failed)
	if r.tries != nil {
		b.Tries = *r.tries
	}
	return b
}

// Named returns the time after which a receiver must have been named to get deliveries at now.
func Named(now time.Time) int64 { return Millis(now.Add(-storage.DeliveryFor)) }

// DroppedEvents returns events with the number of lost deliveries of each receiver. They have no id
// yet.
func DroppedEvents(receivers []string, now int64) (out []storage.Event) {
	counts := make(map[string]int)
	for _, r := range receivers {
		counts[r]++
	}
	for r, n := range counts {
		fields, err := json.Marshal(map[string]any{"receiver": r, "deliveries": n})
		if err != nil {
			panic("column: " + err.Error()) // a string and a number always encode
		}
		out = append(out, storage.Event{At: Time(now), Name: storage.DeliveriesDropped, Fields: fields})
	}
	return out
}

// Overflowing selects the oldest deliveries beyond storage.MaxDeliveries per receiver.
var Overflowing = fmt.Sprintf(`SELECT seq FROM (SELECT seq, row_number() OVER (PARTITION BY receiver ORDER BY seq DESC) AS n
	FROM outbox) x WHERE n > %d`, storage.MaxDeliveries)
