package authserver

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// clientLimiter allows each client a number of events within a window. It is per process
// and bounded.
type clientLimiter struct {
	now   func() time.Time
	every time.Duration // between two events, once the burst is used up
	burst int

	mu      sync.Mutex // guards clients
	clients map[string]*rate.Limiter
}

// Failures to authenticate are limited for those that guess client secrets. Secrets carry
// 256 random bits, so this protects log and CPU more than the secret: failures beyond the
// limit are answered with 429 and not logged one by one, while the right secret passes.
const (
	failureBurst  = 20 // failures a client may make within failureWindow
	failureWindow = time.Minute
)

const limitedClients = 10_000 // remembered

func newClientLimiter(now func() time.Time, burst int, window time.Duration) *clientLimiter {
	return &clientLimiter{now: now, every: window / time.Duration(burst), burst: burst, clients: map[string]*rate.Limiter{}}
}

// exceeded counts one event and reports whether it is beyond the limit.
func (l *clientLimiter) exceeded(clientID string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	lim, ok := l.clients[clientID]
	if !ok {
		if len(l.clients) >= limitedClients {
			clear(l.clients) // forgetting is safe; growing without bound is not
		}
		lim = rate.NewLimiter(rate.Every(l.every), l.burst)
		l.clients[clientID] = lim
	}
	return !lim.AllowN(l.now(), 1)
}

// slowDown is the answer to a client that is beyond the limit.
func (l *clientLimiter) slowDown(why string) *oauth.Error {
	e := oauth.NewError(oauth.SlowDown, why)
	e.RetryAfter = l.every
	return e
}
