package allowance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
)

// rig is an installation with a store that counts calls. Its replicas share a clock.
type rig struct {
	*installation.Installation
	store *counting
}

// counting counts calls to the store, and fails while away is set.
type counting struct {
	storage.Allowances
	calls atomic.Int64
	away  error
}

func (c *counting) TakeAllowances(
	ctx context.Context, draws []storage.Draw, now time.Time,
) ([]time.Duration, error) {
	c.calls.Add(1)
	if c.away != nil {
		return nil, c.away
	}
	return c.Allowances.TakeAllowances(ctx, draws, now)
}

func newRig(t *testing.T) *rig {
	t.Helper()
	i := installation.New(t)
	return &rig{i, &counting{Allowances: i.Store}}
}

func (r *rig) replica(purpose string) *Limiter {
	return New(r.store, r.Now, r.Logger).Limiter(purpose, 1000)
}

func perSecond(key string, burst int) Draw {
	return Draw{Key: key, Rate: bounded.PerSecond(1, burst)}
}

// admitted returns how many of n requests to each limiter pass. It sends 32 at a time, because the
// store has one writer here.
func admitted(t *testing.T, n int, d Draw, limiters ...*Limiter) int {
	t.Helper()
	var through atomic.Int64
	var wg sync.WaitGroup
	slots := make(chan struct{}, 32)
	for range n {
		for _, l := range limiters {
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				if l.Take(t.Context(), d) == 0 {
					through.Add(1)
				}
			})
		}
	}
	wg.Wait()
	return int(through.Load())
}

func TestReplicasShare(t *testing.T) {
	t.Run("AS-145 a small allowance: replicas let through what there is, exactly", func(t *testing.T) {
		r := newRig(t)
		if got := admitted(t, 32, perSecond("network", 20), r.replica("x"), r.replica("x")); got != 20 {
			t.Errorf("got %d, want 20", got)
		}
	})
	t.Run("AS-145 a large one: a thirty-second part more for each replica at most", func(t *testing.T) {
		r := newRig(t)
		const burst, each = 640, 20
		got := admitted(t, burst, perSecond("network", burst), r.replica("x"), r.replica("x"), r.replica("x"))
		if got < burst || got > burst+3*each {
			t.Errorf("got %d, want %d to %d", got, burst, burst+3*each)
		}
		// several concurrent requests can find the same unpaid part
		if calls := r.store.calls.Load(); calls > 3*burst/4 {
			t.Errorf("the store was asked %d times", calls)
		}
	})
	t.Run("a rare request costs the store nothing", func(t *testing.T) {
		r := newRig(t)
		l := r.replica("x")
		for i := range 100 {
			if wait := l.Take(t.Context(), perSecond(fmt.Sprint(i), 64)); wait != 0 {
				t.Fatalf("got %s", wait)
			}
		}
		if calls := r.store.calls.Load(); calls != 0 {
			t.Errorf("the store was asked %d times", calls)
		}
	})
	t.Run("what is refused costs the store nothing until there is enough again", func(t *testing.T) {
		r := newRig(t)
		a, b, d := r.replica("x"), r.replica("x"), perSecond("network", 10)
		admitted(t, 10, d, a)
		if wait := b.Take(t.Context(), d); wait != time.Second {
			t.Fatalf("got %s, want 1s", wait)
		}
		before := r.store.calls.Load()
		if got := admitted(t, 100, d, a, b); got != 0 || r.store.calls.Load() != before {
			t.Errorf("let through %d, the store was asked %d times", got, r.store.calls.Load()-before)
		}
		r.Advance(time.Second)
		if got := admitted(t, 5, d, a, b); got != 1 {
			t.Errorf("a second later: got %d, want 1", got)
		}
	})
	t.Run("a refusal of much is none of less", func(t *testing.T) {
		r := newRig(t)
		a, b, d := r.replica("x"), r.replica("x"), perSecond("network", 10)
		admitted(t, 5, d, a)
		much := d
		much.N = 8
		if wait := b.Take(t.Context(), much); wait != 3*time.Second {
			t.Errorf("got %s, want 3s", wait)
		}
		if wait := b.Take(t.Context(), d); wait != 0 {
			t.Errorf("got %s, want none", wait)
		}
	})
	t.Run("all draws take or none, and purposes have no key in common", func(t *testing.T) {
		r := newRig(t)
		a, b := r.replica("x"), r.replica("x")
		empty, other := perSecond("network", 10), perSecond("everyone", 10)
		admitted(t, 10, empty, a)
		if wait := b.Take(t.Context(), other, empty); wait != time.Second {
			t.Errorf("got %s, want 1s", wait)
		}
		if got := admitted(t, 20, other, b); got != 9 && got != 10 { // this replica has counted the refused request
			t.Errorf("got %d", got)
		}
		if got := admitted(t, 20, empty, r.replica("y")); got != 10 {
			t.Errorf("another purpose: got %d, want 10", got)
		}
	})
	t.Run("what has no limit is let through", func(t *testing.T) {
		r := newRig(t)
		if got := admitted(t, 50, Draw{Key: "network"}, r.replica("x")); got != 50 || r.store.calls.Load() != 0 {
			t.Errorf("got %d, %d calls", got, r.store.calls.Load())
		}
	})
}

func TestStoreAway(t *testing.T) {
	r := newRig(t)
	a, b, d := r.replica("x"), r.replica("x"), perSecond("network", 10)
	r.store.away = errors.New("connection refused")
	t.Run("AS-145 each replica counts alone, and asks again after a while", func(t *testing.T) {
		if got := admitted(t, 20, d, a, b); got != 20 {
			t.Errorf("got %d, want ten of each", got)
		}
		before := r.store.calls.Load()
		r.Advance(alone - time.Second)
		if a.Take(t.Context(), d); r.store.calls.Load() != before {
			t.Error("the store was asked too early")
		}
		if n := strings.Count(r.Log.String(), "counts alone"); n != 2 { // one per replica
			t.Errorf("%d lines in the log", n)
		}
	})
	t.Run("what was let through meanwhile is taken when the store is back", func(t *testing.T) {
		r.store.away = nil
		r.Advance(time.Second)
		through := admitted(t, 10, d, a)
		if through == 0 || through > alonePerSecond(d) {
			t.Errorf("got %d", through)
		}
		if got := admitted(t, 10, d, r.replica("x")); got > 10-through {
			t.Errorf("another replica: got %d", got)
		}
	})
	t.Run("a request that was given up does not keep the others from the store", func(t *testing.T) {
		r := newRig(t)
		r.store.away = context.Canceled
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		l := r.replica("x")
		l.Take(gone, d)
		r.store.away = nil
		if l.Take(t.Context(), d); r.store.calls.Load() != 2 {
			t.Errorf("the store was asked %d times, want 2", r.store.calls.Load())
		}
	})
}

// alonePerSecond returns how many requests a bucket regains while the store is not asked.
func alonePerSecond(d Draw) int { return int(alone / d.Rate.Every) }
