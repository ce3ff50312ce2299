package bounded

import (
	"hash/maphash"
	"sync"
	"time"
)

// Rate allows Burst events at once, and then one per Every.
type Rate struct {
	Every time.Duration // 0: no limit
	Burst int           // below 1 means 1
}

// PerSecond returns the rate of n events per second, but at least one per day.
func PerSecond(n float64, burst int) Rate {
	return Rate{Every: time.Duration(float64(time.Second) / max(n, slowest)), Burst: burst}
}

const (
	slowest = 1.0 / (24 * 60 * 60)
	century = 100 * 365 * 24 * time.Hour // keeps all times within an int64
)

// bounded returns r with a burst of at least 1 and a window of at most a century.
func (r Rate) bounded() Rate {
	r.Burst = max(r.Burst, 1)
	r.Every = min(r.Every, century/time.Duration(r.Burst))
	return r
}

// Window returns how long an empty bucket takes to fill up.
func (r Rate) Window() time.Duration {
	r = r.bounded()
	return time.Duration(r.Burst) * r.Every
}

// Draw is a request for N tokens from the bucket of a key.
type Draw[K comparable] struct {
	Key  K
	Rate Rate
	N    int // 0 means 1; limited to the burst
}

// Cost returns how long the bucket takes to regain the tokens.
func (d Draw[K]) Cost() time.Duration {
	r := d.Rate.bounded()
	return time.Duration(min(max(d.N, 1), r.Burst)) * r.Every
}

const (
	looked = 16  // buckets that evict compares
	shared = 256 // buckets that keys share when the limiter is full
)

// Limiter holds a token bucket for each key, using the generic cell rate algorithm: it stores only
// when a bucket is full again. It is safe for concurrent use.
//
// It holds up to size keys, and never forgets one that must wait. To make room it drops full
// buckets, or else the fullest of a few with a token left. If all are empty, new keys share a fixed
// number of buckets.
type Limiter[K comparable] struct {
	size  int
	now   func() time.Time
	begun time.Time // times are relative to it
	seed  maphash.Seed

	mu      sync.Mutex // guards the fields below
	buckets map[K]bucket
	spill   [shared]bucket // for keys without their own bucket
	spilled time.Duration  // when all buckets in spill are full again
}

// bucket holds when it is full, and when it has a token again.
type bucket struct{ full, open time.Duration }

// NewLimiter returns a limiter for up to size keys.
func NewLimiter[K comparable](size int, now func() time.Time) *Limiter[K] {
	return &Limiter[K]{size: size, now: now, begun: now(), seed: maphash.MakeSeed(), buckets: map[K]bucket{}}
}

// Take takes the tokens of all draws and returns 0, or takes none and returns the time to wait. The
// keys of the draws must differ.
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

// Len returns the number of buckets.
func (l *Limiter[K]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.buckets)
}

// lacks returns the time until the bucket of d is full, at most its window: a clock that was set
// back makes no caller wait longer.
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
	p.full = max(p.full, full) // keys with other rates may share it
	l.spilled = max(l.spilled, p.full)
}

// evict makes room for a bucket. It returns false if all buckets that it compared are empty.
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

// place returns the shared bucket of a key. The seed keeps secret which keys share one.
func (l *Limiter[K]) place(key K) uint64 { return maphash.Comparable(l.seed, key) % shared }
