package auditlog

import (
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
)

// TestWindows: OP-02. A grant that refreshes every 15 minutes soon has one entry a day, and all
// refreshes are counted. Windows of tool calls last at most an hour. Idle grants are forgotten.
func TestWindows(t *testing.T) {
	for _, c := range []struct {
		event         string
		attrs         []slog.Attr
		first, steady int // entries on the first day, and on each later day
	}{
		{audit.TokenRefreshed, []slog.Attr{slog.String("grant", "grt_a")}, 7, 1},
		{audit.ToolCalled, []slog.Attr{slog.String("grant", "grt_a"), slog.String("outcome", "ok")}, 26, 24},
	} {
		const days, daily = 10, 96
		var s sums
		now := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
		total, entries := 0, 0
		closeDue := func() {
			for done := s.ended(now); done != nil; done = s.ended(now) {
				total += int(done.count)
				entries++
			}
		}
		for range days * daily {
			closeDue()
			if counted, _ := s.count(occurrenceOf(now, c.event, c.attrs), now); counted == nil {
				total++
				entries++
			}
			now = now.Add(15 * time.Minute)
		}
		now = now.Add(48 * time.Hour)
		closeDue()
		if want := c.first + (days-1)*c.steady; total != days*daily || entries > want {
			t.Errorf("OP-02: %s: %d entries for %d events, want at most %d for %d", c.event, entries, total, want,
				days*daily)
		}
		now = now.Add(48 * time.Hour)
		if closeDue(); len(s.byKey) != 0 || len(s.due) != 0 {
			t.Errorf("OP-02: %s: a sum at rest is kept", c.event)
		}
	}
}

// TestSumsOfLongNames: OP-02. Sums with long names replace each other without losing an event, so
// that their spool can be read after a crash (see maxKinds).
func TestSumsOfLongNames(t *testing.T) {
	const kinds = maxKinds/maxLine + 10
	var s sums
	now, events, recorded := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), int64(0), int64(0)
	for i := range kinds {
		now = now.Add(time.Millisecond)
		key := strconv.Itoa(i) + strings.Repeat("x", maxLine)
		for range 2 {
			counted, dropped := s.count(occurrence{at: now, kind: kind{event: audit.ToolCalled, key: key}}, now)
			events++
			if counted == nil {
				recorded++
			}
			for _, c := range dropped {
				recorded += c.count
			}
		}
		if s.kinds > maxKinds {
			t.Fatalf("%d sums have kinds of %d bytes", len(s.byKey), s.kinds)
		}
	}
	left := int64(len(s.counting()))
	if left < kinds-20 || left == kinds || recorded+left != events {
		t.Errorf("of %d events %d are recorded and %d counted", events, recorded, left)
	}
}
