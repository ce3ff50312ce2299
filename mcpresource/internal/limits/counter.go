package limits

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/rules"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/token"
)

// Counter counts for several replicas. Package mcpresource/postgres provides one.
type Counter interface {
	// Take takes one from each allowance and returns 0. If one is exhausted, it takes nothing and
	// returns the time to wait. There are one or two allowances.
	Take(ctx context.Context, from []Allowance) (wait time.Duration, err error)
}

// Allowance is a rate limit: Burst at once after a pause, and one more after each Every.
type Allowance struct {
	Key   [sha256.Size]byte // of one caller, with one tool or all calls
	Every time.Duration     // 1 µs or more
	Burst int               // 1 or more
}

const (
	counterPatience = 2 * time.Second // timeout for a Counter's answer
	countsAlone     = 5 * time.Second // pause after a timeout
)

// NewLimiter returns a limiter for Config.Limiter that applies l.Calls and l.Tools and counts in c.
// The other members of l belong in Config.Limits. While c does not answer, it counts in this
// process alone, because a failed counter must not stop all calls. A nil logger discards. It
// returns an error for a rate without PerSecond.
func NewLimiter(l Limits, c Counter, logger *slog.Logger) (Limiter, error) {
	l = LimitsWithDefaults(l)
	if err := CheckLimits(l, nil); err != nil {
		return nil, err
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &sharedRates{rates: NewRates(l, time.Now), counter: c, now: time.Now, log: logger}, nil
}

// sharedRates is a limiter shared by several replicas.
type sharedRates struct {
	*rates
	counter Counter
	now     func() time.Time
	log     *slog.Logger
	until   atomic.Int64 // when to ask the counter again, in nanoseconds since the epoch
}

// Allow implements Limiter.
func (c *sharedRates) Allow(ctx context.Context, p *token.Principal, op rules.Operation) (time.Duration, bool) {
	draws := c.draws(nil, p, op)
	var from []Allowance
	for _, d := range draws {
		if d.Rate.Every > 0 {
			from = append(from, Allowance{d.Key.digest(), max(d.Rate.Every, time.Microsecond), max(d.Rate.Burst, 1)})
		}
	}
	if len(from) == 0 {
		return 0, true
	}
	wait, ok := c.take(ctx, from)
	if !ok {
		wait = c.buckets.Take(draws...)
	}
	return wait, wait <= 0
}

// take asks the counter. ok is false if it does not answer.
func (c *sharedRates) take(ctx context.Context, from []Allowance) (wait time.Duration, ok bool) {
	now := c.now()
	if now.UnixNano() < c.until.Load() {
		return 0, false
	}
	asked, cancel := context.WithTimeout(ctx, counterPatience)
	defer cancel()
	wait, err := c.counter.Take(asked, from)
	if err != nil && ctx.Err() == nil && c.until.Swap(now.Add(countsAlone).UnixNano()) <= now.UnixNano() {
		c.log.WarnContext(ctx, "calls cannot be counted together; this replica counts alone for a while", "cause", err)
	}
	return wait, err == nil
}

// digest returns a hash that is unique for each bucket.
func (b bucket) digest() [sha256.Size]byte {
	what := sha256.Sum256([]byte(b.what))
	return sha256.Sum256(append(what[:], b.who...))
}
