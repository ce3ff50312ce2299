package bounded

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

type clock struct{ t time.Time }

func newClock() *clock                        { return &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }
func (c *clock) now() time.Time               { return c.t }
func (c *clock) pass(d time.Duration)         { c.t = c.t.Add(d) }
func (c *clock) in(d time.Duration) time.Time { return c.t.Add(d) }

func TestMap(t *testing.T) {
	c := newClock()
	m := New[string, int](3, c.now)
	holds := func(want string) {
		t.Helper()
		got := ""
		for _, k := range []string{"a", "b", "c", "d", "e"} {
			m.mu.RLock()
			if m.entries[k] != nil {
				got += k
			}
			m.mu.RUnlock()
		}
		if got != want || m.Len() != len(want) {
			t.Errorf("got %q (%d), want %q", got, m.Len(), want)
		}
	}
	for i, k := range []string{"a", "b", "c"} {
		m.Put(k, i, time.Time{})
		c.pass(coarse)
	}
	if v, ok := m.Get("a"); v != 0 || !ok {
		t.Errorf("a: got %d %t", v, ok)
	}
	m.Put("d", 3, c.in(time.Minute))
	holds("acd") // b is the least recently used
	if m.Add("c", 9, time.Time{}) {
		t.Error("c was added twice")
	}
	if v, _ := m.Get("c"); v != 2 {
		t.Errorf("Add has changed c to %d", v)
	}
	m.Put("c", 5, time.Time{})
	if v, _ := m.Get("c"); v != 5 {
		t.Errorf("c: got %d, want the last value", v)
	}
	m.Drop("c")
	m.Drop("c")
	holds("ad")
	c.pass(time.Minute)
	if _, ok := m.Get("d"); ok {
		t.Error("d is found when it has ended")
	}
	holds("a")
	if !m.Add("d", 7, c.in(time.Minute)) {
		t.Error("d has ended and cannot be added")
	}
	if m.Put("e", 1, c.now()); m.Len() != 2 {
		t.Error("an expired entry is kept")
	}
}

func TestMapEnds(t *testing.T) {
	c := newClock()
	m := New[int, int](100, c.now)
	for i := range 50 {
		m.Put(i, i, c.in(time.Minute))
	}
	c.pass(30 * time.Second)
	if _, ok := m.Use(0, c.in(time.Minute)); !ok {
		t.Error("0 is not found")
	}
	c.pass(30 * time.Second)
	if _, ok := m.Use(1, c.in(time.Minute)); ok {
		t.Error("1 is found when it has ended")
	}
	if m.Put(100, 0, time.Time{}); m.Len() != 2 {
		t.Errorf("%d entries, want the one whose end was moved and the new one", m.Len())
	}
	if _, ok := m.Get(0); !ok {
		t.Error("the one whose end was moved is gone")
	}
	alone := New[int, int](2, c.now)
	for i := range 4 {
		alone.Put(i, i, c.in(time.Minute))
		if c.pass(time.Minute); alone.Len() != 1 {
			t.Errorf("%d: %d entries, want the new one", i, alone.Len())
		}
	}
	none := New[int, int](0, c.now)
	if none.Put(1, 1, time.Time{}); none.Len() != 0 || !none.Add(1, 1, time.Time{}) {
		t.Error("a map of none remembers")
	}
}

// TestMapOwners checks that an owner who adds many entries loses only their own.
func TestMapOwners(t *testing.T) {
	c := newClock()
	m := NewShared[string, string](3, c.now, func(v string) any { return v })
	for _, k := range []string{"a", "b", "c"} {
		m.Put(k, k, time.Time{})
		c.pass(time.Second)
	}
	m.Use("a", time.Time{})
	for i := range 9 {
		m.Put(fmt.Sprint("flood", i), "flood", time.Time{})
		c.pass(time.Second)
	}
	_, a := m.Get("a")
	_, b := m.Get("b")
	_, kept := m.Get("flood8")
	if !a || b || !kept || m.Len() != 3 {
		t.Errorf("a %t, b %t, the newest %t, %d entries", a, b, kept, m.Len())
	}
	if m.Put("flood8", "c", time.Time{}); m.Count("flood", time.Time{}) != 0 || m.Count("c", time.Time{}) != 2 {
		t.Error("an entry that changes hands is counted for the old owner")
	}
	if n := m.Count("c", c.t.Add(-time.Second)); n != 1 {
		t.Errorf("%d entries of c were used of late, want 1", n)
	}
	for _, k := range []string{"a", "c", "flood8"} {
		m.Drop(k)
	}
	if len(m.lines) != 0 {
		t.Errorf("%d owners without entries are kept", len(m.lines))
	}
}

// TestMapConcurrent checks that only one of many concurrent calls adds a key.
func TestMapConcurrent(t *testing.T) {
	m := New[int, int](100, time.Now)
	var first atomic.Int32
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			for i := range 200 {
				if m.Add(-1, 0, time.Time{}) {
					first.Add(1)
				}
				m.Get(-1)
				m.Put(i%90, i, time.Now().Add(time.Duration(i%3)*time.Microsecond))
				m.Use(i%80, time.Time{})
				m.Drop(i % 70)
			}
		})
	}
	all.Wait()
	if first.Load() != 1 || m.Len() > 100 {
		t.Errorf("%d were first, %d entries", first.Load(), m.Len())
	}
}

func TestMapHitAllocatesNothing(t *testing.T) {
	c := newClock()
	m := New[string, *clock](10, c.now)
	m.Put("a", c, time.Time{})
	if n := testing.AllocsPerRun(100, func() { m.Get("a"); c.pass(coarse); m.Get("a"); m.Get("b") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func benchmarkMap(b *testing.B, of func(m *Map[string, int], i int)) {
	const size = 10_000
	m := New[string, int](size, time.Now)
	for i := range size {
		m.Put(keys[i], i, time.Time{})
	}
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			of(m, i)
		}
	})
}

// keys are as long as access tokens.
var keys = func() (out []string) {
	for i := range 40_000 {
		out = append(out, fmt.Sprintf("%0800d", i))
	}
	return out
}()

func BenchmarkMapHit(b *testing.B) {
	benchmarkMap(b, func(m *Map[string, int], i int) { m.Get(keys[i%100]) })
}

func BenchmarkMapMiss(b *testing.B) {
	benchmarkMap(b, func(m *Map[string, int], i int) { m.Get(keys[20_000+i%100]) })
}

func BenchmarkMapFull(b *testing.B) {
	benchmarkMap(b, func(m *Map[string, int], i int) { m.Put(keys[i%len(keys)], i, time.Time{}) })
}
