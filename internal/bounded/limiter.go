package bounded

import (
	"hash/maphash"
	"sync"
	"time"
)

// Rate is an allowance: Burst at once, after a rest, and one more after each Every.
type Rate struct {
	Every time.Duration // 0: no limit
	Burst int           // less than 1 is 1
}

// PerSecond is the rate of n a second; none or less is one a day.
func PerSecond(n float64, burst int) Rate {
	return Rate{Every: time.Duration(float64(time.Second) / max(n, slowest)), Burst: burst}
}

const (
	slowest = 1.0 / (24 * 60 * 60)
	century = 100 * 365 * 24 * time.Hour // keeps all times within an int64
)

// bounded returns the rate with a burst of at least one that is had back within a century.
func (r Rate) bounded() Rate {
	r.Burst = max(r.Burst, 1)
	r.Every = min(r.Every, century/time.Duration(r.Burst))
	return r
}

// Window is how long an empty bucket takes to be full.
func (r Rate) Window() time.Duration {
	r = r.bounded()
	return time.Duration(r.Burst) * r.Every
}

// Draw is what is to be taken from the bucket of a key.
type Draw[K comparable] struct {
	Key  K
	Rate Rate
	N    int // 0 is 1; more than the burst is the burst, since more can never be had
}

// Cost is how long the bucket takes to have back what is taken.
func (d Draw[K]) Cost() time.Duration {
	r := d.Rate.bounded()
	return time.Duration(min(max(d.N, 1), r.Burst)) * r.Every
}

const (
	looked = 16  // buckets that are compared when one has to go
	shared = 256 // buckets that keys share for which there is no place
)

// Limiter has a token bucket for each key, by the generic cell rate algorithm: a bucket is one
// number, when it would be full again. It is safe for concurrent use.
//
// It has place for a number of keys, and no flood of keys makes it forget one that has to wait. When
// there is no place, buckets go that are full again, which loses nothing, or else, of a few, the one
// that lacks least and is not empty. When all are empty, new keys share a fixed number of buckets.
type Limiter[K comparable] struct {
	size  int
	now   func() time.Time
	begun time.Time // times are counted from here
	seed  maphash.Seed

	mu      sync.Mutex // guards what follows
	buckets map[K]bucket
	spill   [shared]bucket // of keys without a place
	spilled time.Duration  // when all in spill are full again
}

// bucket knows when it is full again, and since when it is not empty.
type bucket struct{ full, open time.Duration }

// NewLimiter returns a limiter with place for size keys.
func NewLimiter[K comparable](size int, now func() time.Time) *Limiter[K] {
	return &Limiter[K]{size: size, now: now, begun: now(), seed: maphash.MakeSeed(), buckets: map[K]bucket{}}
}

// Take takes what all draws ask for, or nothing and returns how long to wait. The keys of the draws
// differ.
func (l *Limiter[K]) Take(draws ...Draw[K]) (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now().Sub(l.begun)
	for _, d := range draws {
		wait = max(wait, l.lacks(d, now)+d.Cost()-d.Rate.Window())
	}
	if wait > 0 {
		return wait
	}
	for _, d := range draws {
		if d.Rate.Every > 0 {
			l.charge(d, now)
		}
	}
	return 0
}

// Len returns for how many keys there is a bucket.
func (l *Limiter[K]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.buckets)
}

// lacks returns how long the bucket of a draw takes to be full, which is no more than its window: a
// clock that was set back makes no caller wait longer.
func (l *Limiter[K]) lacks(d Draw[K], now time.Duration) time.Duration {
	b, ok := l.buckets[d.Key]
	if !ok && now < l.spilled {
		b = l.spill[l.place(d.Key)]
	}
	return min(max(b.full-now, 0), d.Rate.Window())
}

func (l *Limiter[K]) charge(d Draw[K], now time.Duration) {
	full := now + l.lacks(d, now) + d.Cost()
	b := bucket{full: full, open: full - d.Rate.Window() + d.Rate.bounded().Every}
	if _, ok := l.buckets[d.Key]; ok || len(l.buckets) < l.size || l.evict(now) {
		l.buckets[d.Key] = b
		return
	}
	p := &l.spill[l.place(d.Key)]
	p.full = max(p.full, full) // whatever the rate of the others in it
	l.spilled = max(l.spilled, p.full)
}

// evict makes room, and returns false when all that it looks at are empty.
func (l *Limiter[K]) evict(now time.Duration) bool {
	var least K
	var full time.Duration
	seen, found, dropped := 0, false, false
	for k, b := range l.buckets {
		if seen++; seen > looked {
			break
		}
		switch {
		case b.full <= now:
			delete(l.buckets, k)
			dropped = true
		case b.open <= now && (!found || b.full < full):
			least, full, found = k, b.full, true
		}
	}
	if !dropped && found {
		delete(l.buckets, least)
	}
	return dropped || found
}

// place is the shared bucket of a key. It is secret which keys share one.
func (l *Limiter[K]) place(key K) uint64 { return maphash.Comparable(l.seed, key) % shared }
