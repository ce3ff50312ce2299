package bounded

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func take(l *Limiter[string], r Rate, keys ...string) time.Duration {
	var draws []Draw[string]
	for _, k := range keys {
		draws = append(draws, Draw[string]{Key: k, Rate: r})
	}
	return l.Take(draws...)
}

func TestLimiter(t *testing.T) {
	c := newClock()
	l := NewLimiter[string](10, c.now)
	r := PerSecond(2, 3)
	for range 3 {
		if wait := take(l, r, "a"); wait != 0 {
			t.Fatalf("within the burst: wait %s", wait)
		}
	}
	if wait := take(l, r, "a"); wait != 500*time.Millisecond {
		t.Errorf("beyond the burst: wait %s, want half a second", wait)
	}
	if wait := take(l, r, "b", "a"); wait == 0 {
		t.Error("of two keys one is empty, and both are taken from")
	}
	if wait := l.Take(Draw[string]{"b", r, 3}); wait != 0 {
		t.Errorf("a refused draw has taken: wait %s", wait)
	}
	c.pass(500 * time.Millisecond)
	if take(l, r, "a") != 0 || take(l, r, "a") == 0 {
		t.Error("after half a second: not one")
	}
	if wait := l.Take(Draw[string]{"c", r, 100}); wait != 0 {
		t.Errorf("more than a burst is a burst: wait %s", wait)
	}
	c.pass(-time.Hour)
	if wait := take(l, r, "a"); wait > 500*time.Millisecond {
		t.Errorf("when the clock was set back: wait %s", wait)
	}
	if take(l, Rate{}, "free") != 0 || l.Len() != 3 {
		t.Error("an unlimited key takes a place")
	}
}

func TestLimiterExtremes(t *testing.T) {
	for _, r := range []Rate{
		PerSecond(1e-30, 1<<60), PerSecond(1e30, 0), PerSecond(-1, 0), PerSecond(0, 1<<62),
		{Every: 1 << 62, Burst: 1 << 62}, {Every: 1, Burst: 1 << 62},
	} {
		l := NewLimiter[string](10, newClock().now)
		if wait := take(l, r, "a"); wait != 0 {
			t.Errorf("%+v: the first waits %s", r, wait)
		}
		if wait := take(l, r, "a"); wait < 0 {
			t.Errorf("%+v: the second waits %s", r, wait)
		}
	}
}

// TestLimiterFlood checks that keys used once displace no key that must wait or has fewer tokens,
// and that memory is bounded (RS-51, RS-196).
func TestLimiterFlood(t *testing.T) {
	c := newClock()
	l := NewLimiter[string](100, c.now)
	r := Rate{Every: time.Minute, Burst: 5}
	for range 5 {
		take(l, r, "throttled")
	}
	for range 4 {
		take(l, r, "nearly")
	}
	for i := range 10_000 {
		take(l, r, fmt.Sprint(i))
	}
	if take(l, r, "throttled") == 0 {
		t.Error("RS-189: a key that has to wait is forgotten")
	}
	if take(l, r, "nearly") != 0 || take(l, r, "nearly") == 0 {
		t.Error("a key that lacks more than the others is forgotten")
	}
	if l.Len() > 100 {
		t.Errorf("RS-51: %d keys", l.Len())
	}
}

// TestLimiterFullOfThrottled checks that keys that must wait are not forgotten. New keys share
// buckets until there is room.
func TestLimiterFullOfThrottled(t *testing.T) {
	c := newClock()
	l := NewLimiter[int](50, c.now)
	one := func(k int) bool { return l.Take(Draw[int]{Key: k, Rate: Rate{time.Minute, 1}}) == 0 }
	for k := range 50 {
		one(k)
	}
	passed := 0
	for k := range 100_000 {
		if one(100 + k) {
			passed++
		}
	}
	if passed == 0 || passed > shared {
		t.Errorf("of new keys %d pass, want some, and no more than %d", passed, shared)
	}
	for k := range 50 {
		if one(k) {
			t.Errorf("%d is forgotten", k)
		}
	}
	if c.pass(time.Minute); !one(0) || !one(1000) || one(1000) || l.Len() > 50 {
		t.Error("after a minute, keys are not counted by themselves")
	}
}

// TestLimiterConcurrent checks that concurrent calls take no more than the burst.
func TestLimiterConcurrent(t *testing.T) {
	l := NewLimiter[string](10, newClock().now)
	var passed atomic.Int32
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			for range 100 {
				if take(l, Rate{time.Hour, 7}, "a") == 0 {
					passed.Add(1)
				}
			}
		})
	}
	all.Wait()
	if passed.Load() != 7 {
		t.Errorf("%d passed, want 7", passed.Load())
	}
}

func TestLimiterHitAllocatesNothing(t *testing.T) {
	l := NewLimiter[string](10, time.Now)
	d := Draw[string]{Key: "a", Rate: PerSecond(1e6, 1000)}
	l.Take(d)
	if n := testing.AllocsPerRun(100, func() { l.Take(d, Draw[string]{Key: "b", Rate: d.Rate}) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func benchmarkLimiter(b *testing.B, key func(i int) int, r Rate) {
	const size = 10_000
	l := NewLimiter[int](size, time.Now)
	for i := range size {
		l.Take(Draw[int]{Key: i, Rate: r})
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		l.Take(Draw[int]{Key: key(i), Rate: r})
	}
}

func BenchmarkLimiterHit(b *testing.B) {
	benchmarkLimiter(b, func(i int) int { return i % 100 }, PerSecond(1e6, 1000))
}

func BenchmarkLimiterFull(b *testing.B) {
	benchmarkLimiter(b, func(i int) int { return 10_000 + i }, Rate{time.Hour, 2})
}

func BenchmarkLimiterFullOfThrottled(b *testing.B) {
	benchmarkLimiter(b, func(i int) int { return 10_000 + i }, Rate{time.Hour, 1})
}
