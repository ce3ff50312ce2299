package mcpresource

import (
	"sync"
	"time"
)

const (
	maxBuckets = 50_000
	// slowest keeps times within an int64: once a day.
	slowest  = 1.0 / (24 * 60 * 60)
	maxBurst = 50_000
)

// buckets counts what happens by the generic cell rate algorithm, which is a token
// bucket in one number: when the bucket would be full again. One that is full needs no
// place, so what is kept is those who did something in the last moments, and no more
// than maxBuckets of them.
type buckets struct {
	now func() time.Time

	mu     sync.Mutex       // guards fullAt
	fullAt map[bucket]int64 // Unix nanoseconds
}

// bucket is one count of one caller.
type bucket struct{ who, what string }

// draw is what is to be taken from a bucket.
type draw struct {
	bucket
	Rate
}

func newBuckets(now func() time.Time) *buckets {
	return &buckets{now: now, fullAt: map[bucket]int64{}}
}

// interval is the time that one takes; zero is no limit.
func (r Rate) interval() int64 {
	if r.PerSecond <= 0 {
		return 0
	}
	return int64(float64(time.Second) / max(r.PerSecond, slowest))
}

func (r Rate) burst() int64 {
	if r.Burst <= 0 {
		return int64(min(max(r.PerSecond*burstSeconds, 1), maxBurst))
	}
	return int64(min(r.Burst, maxBurst))
}

// take takes one from each bucket, or none of them and says how long to wait.
func (b *buckets) take(draws ...draw) (wait time.Duration) {
	now := b.now().UnixNano()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range draws {
		full := max(b.fullAt[d.bucket], now)
		wait = max(wait, time.Duration(full-now-(d.burst()-1)*d.interval()))
	}
	if wait > 0 {
		return wait
	}
	for _, d := range draws {
		if d.interval() == 0 {
			continue
		}
		full, known := b.fullAt[d.bucket]
		if !known && len(b.fullAt) >= maxBuckets {
			b.evict(now)
		}
		b.fullAt[d.bucket] = max(full, now) + d.interval()
	}
	return 0
}

// evict makes room: of a few buckets it drops the full ones, which lose nothing, or else
// the one that is closest to it.
func (b *buckets) evict(now int64) {
	var closest bucket
	looked, dropped, least := 0, 0, int64(0)
	for k, full := range b.fullAt {
		if looked++; looked > 16 {
			break
		}
		if full <= now {
			delete(b.fullAt, k)
			dropped++
		} else if least == 0 || full < least {
			closest, least = k, full
		}
	}
	if dropped == 0 {
		delete(b.fullAt, closest)
	}
}
