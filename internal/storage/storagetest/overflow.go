package storagetest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Overflow queues more deliveries for a receiver than the limit. A sweep removes the oldest, and an
// event contains their number (AS-245). open returns an empty store, and a function that changes
// its rows by SQL.
func Overflow(t *testing.T, open func(t *testing.T) (storage.Store, func(query string, args ...any))) {
	s, exec := open(t)
	e := newEnv(t, s)
	wait := func(receiver string, n int) {
		exec(fmt.Sprintf(`INSERT INTO outbox (id, receiver, kind, subject, detail, at, due_at, tries, failed)
			WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			SELECT '%s_' || i, '%s', 'verification', '', '{}', %d, 0, 0, '' FROM n ORDER BY i`,
			n, receiver, receiver, e.now.UnixMilli()))
	}
	wait("away", storage.MaxDeliveries+3)
	wait("slow", storage.MaxDeliveries)
	dropped := func() (out []map[string]any) {
		t.Helper()
		_, err := s.Sweep(e.ctx, storage.Retention{Now: e.now}, 100)
		check(t, err)
		events, err := s.TakeEvents(e.ctx, 100, e.now)
		check(t, err)
		for _, event := range events {
			if event.Name != storage.DeliveriesDropped || event.ID == "" || !event.At.Equal(e.now) {
				continue
			}
			var fields map[string]any
			check(t, json.Unmarshal(event.Fields, &fields))
			out = append(out, fields)
		}
		return out
	}
	same(t, dropped(), []map[string]any{{"receiver": "away", "deliveries": 3.0}})
	same(t, dropped(), []map[string]any(nil))
	backlogs, err := s.Backlogs(e.ctx, e.now)
	check(t, err)
	for _, b := range backlogs {
		same(t, b.Waiting, storage.MaxDeliveries)
	}
	d, err := s.TakeDelivery(e.ctx, "away", e.now, e.now.Add(time.Minute))
	check(t, err)
	same(t, d.ID, "away_4")
}
