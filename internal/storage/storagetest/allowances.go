package storagetest

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

var granted []time.Duration // no draw must wait

// draw takes from allowances at now, and returns how long each draw must wait.
func (e *env) draw(t testing.TB, now time.Time, draws ...storage.Draw) []time.Duration {
	t.Helper()
	waits, err := e.s.TakeAllowances(e.ctx, draws, now)
	check(t, err)
	return waits
}

// allowances checks the rate limits that replicas share.
func allowances(t *testing.T, e *env) {
	some := func(cost time.Duration) storage.Draw {
		return storage.Draw{Key: randomHash(), Cost: cost, Span: 10 * time.Second}
	}
	t.Run("as much is taken as there is, and comes back with time", func(t *testing.T) {
		d := some(4 * time.Second)
		same(t, e.draw(t, e.now, d), granted)
		same(t, e.draw(t, e.now, d), granted)
		same(t, e.draw(t, e.now, d), []time.Duration{2 * time.Second})
		same(t, e.draw(t, e.now.Add(2*time.Second-time.Millisecond), d), []time.Duration{time.Millisecond})
		same(t, e.draw(t, e.now.Add(2*time.Second), d), granted)
	})
	t.Run("all draws take, or none", func(t *testing.T) {
		empty, other := some(10*time.Second), some(10*time.Second)
		same(t, e.draw(t, e.now, empty), granted)
		same(t, e.draw(t, e.now, other, empty), []time.Duration{0, 10 * time.Second})
		same(t, e.draw(t, e.now, empty, other), []time.Duration{10 * time.Second, 0})
		same(t, e.draw(t, e.now, other), granted)
		same(t, e.draw(t, e.now), granted)
	})
	t.Run("a clock that was set back makes no caller wait longer than for the whole", func(t *testing.T) {
		d := some(10 * time.Second)
		same(t, e.draw(t, e.now.Add(time.Hour), d), granted)
		same(t, e.draw(t, e.now, d), []time.Duration{10 * time.Second})
	})
	t.Run("an allowance that was made smaller lacks no more than all of it", func(t *testing.T) {
		d := some(10 * time.Second)
		same(t, e.draw(t, e.now, d), granted)
		d.Cost, d.Span = time.Second, 2*time.Second
		same(t, e.draw(t, e.now, d), []time.Duration{time.Second})
	})
	t.Run("what takes less than a millisecond to come back takes one", func(t *testing.T) {
		d := storage.Draw{Key: randomHash(), Cost: time.Microsecond, Span: 2 * time.Millisecond}
		same(t, e.draw(t, e.now, d), granted)
		same(t, e.draw(t, e.now, d), granted)
		same(t, e.draw(t, e.now, d), []time.Duration{time.Millisecond})
	})
	t.Run("the sweep removes what is whole, and nothing else", func(t *testing.T) {
		d, later := some(10*time.Second), e.now.Add(2*time.Hour)
		e.sweepAll(t, later) // removes rows of other tests
		same(t, e.draw(t, later, d), granted)
		swept := func(after time.Duration) int {
			n, err := e.s.Sweep(e.ctx, storage.Retention{Now: later.Add(after)}, 100)
			check(t, err)
			return n
		}
		same(t, swept(10*time.Second-time.Millisecond), 0)
		same(t, e.draw(t, later, d), []time.Duration{10 * time.Second})
		same(t, swept(10*time.Second), 1)
	})
}

// raceAllowances takes from two allowances in either order. One of them has enough for a quarter of
// the racers, so that many succeed.
func raceAllowances(t *testing.T, e *env) {
	scarce := storage.Draw{Key: randomHash(), Cost: time.Minute, Span: racers / 4 * time.Minute}
	plenty := storage.Draw{Key: randomHash(), Cost: time.Second, Span: time.Hour}
	var c tally
	var taken atomic.Int64
	compete(func(i int) {
		draws := []storage.Draw{scarce, plenty}
		if i%2 == 1 {
			slices.Reverse(draws)
		}
		waits, err := e.s.TakeAllowances(e.ctx, draws, e.now)
		c.add(err)
		if waits == nil {
			taken.Add(1)
		}
	})
	c.want(t, racers)
	same(t, taken.Load(), int64(racers/4))
	rest := storage.Draw{Key: plenty.Key, Cost: time.Hour - racers/4*time.Second, Span: time.Hour}
	same(t, e.draw(t, e.now, rest), granted)
}
