package mcpresource

import (
	"time"

	"github.com/mcp-authd/mcp-authd/internal/bounded"
)

const (
	maxBuckets = 50_000
	maxBurst   = 50_000
	slowest    = 1.0 / (24 * 60 * 60) // once a day
)

// bucket is one count of one caller.
type bucket struct{ who, what string }

// buckets counts what callers do.
type buckets = bounded.Limiter[bucket]

func newBuckets(now func() time.Time) *buckets { return bounded.NewLimiter[bucket](maxBuckets, now) }

// draw is one of what the rate allows in a bucket.
func (r Rate) draw(from bucket) bounded.Draw[bucket] {
	if r.PerSecond <= 0 {
		return bounded.Draw[bucket]{Key: from}
	}
	return bounded.Draw[bucket]{Key: from, Rate: bounded.PerSecond(r.PerSecond, r.burst())}
}

func (r Rate) burst() int {
	if r.Burst <= 0 {
		return int(min(max(r.PerSecond*burstSeconds, 1), maxBurst))
	}
	return min(r.Burst, maxBurst)
}
