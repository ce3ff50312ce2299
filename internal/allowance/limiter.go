package allowance

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Limiter keeps a token bucket per key. It is safe for concurrent use.
type Limiter struct {
	limits  *Limits
	purpose string
	local   *bounded.Limiter[string]

	mu    sync.Mutex // guards changes of marks
	marks *bounded.Map[string, mark]
}

// mark is the local state about the bucket of a key in the store.
type mark struct {
	unpaid  int       // admitted, but not yet taken from the store
	asking  int       // admitted, and being taken from the store
	refused int       // the amount that the store refused last; 0 if none
	until   time.Time // when the store has that amount again
}

// Take takes the amounts of all draws, or takes nothing and returns how long to wait. The keys of
// the draws must differ.
func (l *Limiter) Take(ctx context.Context, draws ...Draw) (wait time.Duration) {
	shared := l.limits.shared()
	if shared {
		if wait := l.refused(draws); wait > 0 {
			return wait
		}
	}
	if wait := l.local.Take(draws...); wait > 0 || !shared {
		return wait
	}
	draws = slices.DeleteFunc(slices.Clone(draws), func(d Draw) bool { return d.Rate.Every <= 0 }) // unlimited
	due := l.due(draws)
	if due == nil {
		return 0
	}
	waits, ok := l.limits.take(ctx, l.inStore(draws, due))
	return l.settle(draws, due, waits, ok)
}

// Len returns the number of local buckets.
func (l *Limiter) Len() int { return l.local.Len() }

// refused returns how long the draws must wait after an earlier refusal by the store.
func (l *Limiter) refused(draws []Draw) (wait time.Duration) {
	now := l.limits.now()
	for _, d := range draws {
		if m, ok := l.marks.Get(d.Key); ok && m.refused > 0 && amount(d) >= m.refused {
			wait = max(wait, m.until.Sub(now))
		}
	}
	return wait
}

// due counts draws as admitted. If a key exceeds its unpaid share, due returns the amounts to take
// from the store, and moves them from unpaid to asking.
func (l *Limiter) due(draws []Draw) (due []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	due = make([]int, len(draws))
	much := false
	for i, d := range draws {
		m, _ := l.marks.Get(d.Key)
		due[i] = m.unpaid + amount(d)
		much = much || due[i]+m.asking > d.Rate.Burst/shareUnpaid
	}
	for i, d := range draws {
		m, _ := l.marks.Get(d.Key)
		if much {
			m.asking, m.unpaid = m.asking+m.unpaid, 0
		} else {
			m.unpaid = due[i]
		}
		l.put(d, m)
	}
	if !much {
		return nil
	}
	return due
}

// settle records the answer of the store, and returns how long to wait. Earlier amounts that the
// store did not take become unpaid again.
func (l *Limiter) settle(draws []Draw, due []int, waits []time.Duration, ok bool) (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.limits.now()
	for i, d := range draws {
		m, _ := l.marks.Get(d.Key)
		before := due[i] - amount(d)
		m.asking = max(m.asking-before, 0)
		switch {
		case !ok: // the request is admitted
			m.unpaid = min(m.unpaid+due[i], d.Rate.Burst)
		case waits != nil:
			m.unpaid = min(m.unpaid+before, d.Rate.Burst)
			wait = max(wait, waits[i])
			if waits[i] > 0 {
				m.refused, m.until = amount(d), now.Add(waits[i])
			}
		}
		l.put(d, m)
	}
	return wait
}

// put keeps a mark for as long as an empty bucket takes to fill.
func (l *Limiter) put(d Draw, m mark) {
	l.marks.Put(d.Key, m, l.limits.now().Add(d.Rate.Window()))
}

func (l *Limiter) inStore(draws []Draw, due []int) (out []storage.Draw) {
	for i, d := range draws {
		d.N = due[i]
		out = append(out, storage.Draw{Key: keyOf(l.purpose, d.Key), Cost: d.Cost(), Span: d.Rate.Window()})
	}
	return out
}

// amount returns the number of tokens that a draw takes: at least 1, at most the burst.
func amount(d Draw) int { return min(max(d.N, 1), max(d.Rate.Burst, 1)) }
