package mcpresource

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limiter bounds how often a caller may do things.
type Limiter interface {
	// Allow counts one operation and reports whether it may go ahead, or else how long
	// to wait.
	Allow(ctx context.Context, p *Principal, op Operation) (retryAfter time.Duration, ok bool)
}

const limitedCallers = 10_000

// PerPrincipal limits the tool calls, completions and new sessions of each caller
// (issuer, subject and client together, never a session or a header) to perSecond,
// with a burst. What it remembers is bounded.
func PerPrincipal(perSecond float64, burst int) Limiter {
	return &perPrincipal{rate: rate.Limit(perSecond), burst: burst, callers: map[string]*rate.Limiter{}}
}

type perPrincipal struct {
	rate  rate.Limit
	burst int

	mu      sync.Mutex // guards callers
	callers map[string]*rate.Limiter
}

func (l *perPrincipal) Allow(_ context.Context, p *Principal, op Operation) (time.Duration, bool) {
	switch op.Method {
	case "tools/call", "completion/complete", "initialize":
	default:
		return 0, true
	}
	r := l.of(p.Key()).Reserve()
	if !r.OK() {
		return time.Minute, false
	}
	if d := r.Delay(); d > 0 {
		r.Cancel()
		return d, false
	}
	return 0, true
}

func (l *perPrincipal) of(key string) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, ok := l.callers[key]
	if ok {
		return c
	}
	if len(l.callers) >= limitedCallers {
		for k, old := range l.callers { // those with a full bucket lose nothing
			if old.Tokens() >= float64(l.burst) {
				delete(l.callers, k)
			}
		}
		if len(l.callers) >= limitedCallers {
			clear(l.callers)
		}
	}
	c = rate.NewLimiter(l.rate, l.burst)
	l.callers[key] = c
	return c
}
