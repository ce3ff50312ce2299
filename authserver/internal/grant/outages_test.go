package grant

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// TestOutages checks that a grace period does not run while the store is unavailable, and is normal
// a minute after an outage (OP-03).
func TestOutages(t *testing.T) {
	const grace = time.Minute
	noon := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }
	down := errors.New("no answer")
	type write struct {
		began, ended int
		err          error
	}
	hour := []write{{0, 0, nil}, {5, 15, down}, {3590, 3600, down}, {3605, 3605, nil}}
	for _, c := range []struct {
		name   string
		writes []write
		now    int
		want   time.Duration
	}{
		{"nothing was seen", nil, 0, grace},
		{"all is well", []write{{0, 0, nil}, {1, 1, nil}}, 2, grace},
		{"a refusal says nothing", []write{{0, 0, storage.ErrSpent}}, 600, grace},
		{"it is away", hour[:3], 3605, grace + time.Hour},
		{"an hour, just over", hour, 3605, grace + time.Hour},
		{"an hour, half a grace after it", hour, 3635, grace + time.Hour},
		{"an hour, a grace after it: as before", hour, 3665, grace},
		{"others were answered when the write failed", []write{{0, 12, nil}, {5, 15, down}}, 20, grace + 8*time.Second},
		{"two in one grace", []write{{10, 20, down}, {30, 30, nil}, {40, 50, down}, {70, 70, nil}}, 80,
			grace + 50*time.Second},
		{"a caller who hangs up decides nothing", []write{{0, 5, context.Canceled}}, 20, grace},
		{"and is forgotten when it works", []write{{0, 5, context.Canceled}, {6, 6, nil}, {20, 25, down}}, 30,
			grace + 10*time.Second},
		{"or was the first to see it", []write{{0, 5, context.Canceled}, {20, 25, down}}, 30, grace + 30*time.Second},
		{"a week", []write{{0, 10, down}}, 7 * 86400, grace + maxExtension},
	} {
		var o Outages
		for _, w := range c.writes {
			o.Observe(at(w.began), at(w.ended), w.err)
		}
		if got := grace + o.Extension(grace, at(c.now)); got != c.want {
			t.Errorf("OP-03: %s: the grace is %v, want %v", c.name, got, c.want)
		}
		if got := o.Extension(0, at(c.now)); got != 0 {
			t.Errorf("OP-03: %s: without a grace there is one of %v", c.name, got)
		}
	}
	var o Outages
	for i := range 1000 {
		o.Observe(at(2*i), at(2*i), down)
		o.Observe(at(2*i+1), at(2*i+1), nil)
	}
	if len(o.past) > keptOutages {
		t.Errorf("%d outages are remembered", len(o.past))
	}
}
