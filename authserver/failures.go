package authserver

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// failureLimiter slows down whoever guesses client secrets. Secrets carry 256
// random bits, so this protects log and CPU more than the secret: failures beyond
// the limit are answered with 429 and not logged one by one, while the right secret
// always passes. It is per process and bounded.
type failureLimiter struct {
	now func() time.Time

	mu      sync.Mutex // guards clients
	clients map[string]*rate.Limiter
}

const (
	failureBurst  = 20 // failures a client may make within failureWindow
	failureWindow = time.Minute
	failureMax    = 10_000 // clients remembered
)

func newFailureLimiter(now func() time.Time) *failureLimiter {
	return &failureLimiter{now: now, clients: map[string]*rate.Limiter{}}
}

// exceeded counts one failure and reports whether it is beyond the limit.
func (l *failureLimiter) exceeded(clientID string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	lim, ok := l.clients[clientID]
	if !ok {
		if len(l.clients) >= failureMax {
			clear(l.clients) // forgetting is safe; growing without bound is not
		}
		lim = rate.NewLimiter(rate.Every(failureWindow/failureBurst), failureBurst)
		l.clients[clientID] = lim
	}
	return !lim.AllowN(l.now(), 1)
}
