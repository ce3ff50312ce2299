package flow

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/mcp-authd/mcp-authd/internal/network"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// How many browsers may be sent to a provider. Nobody has to be signed in for it, and each
// leaves a row behind for ten minutes. A company whose people all come from one address at
// nine o'clock gets through: three thousand in ten minutes, and who has to wait, waits a
// second. Ten such networks together affect others, and the rows of one
// process stay below some thirty thousand.
const (
	signInsOfNetwork = 5  // a second
	signInsInTotal   = 50 // a second
	signInBurst      = 60 // times that at once
	signInNetworks   = 10_000
)

// signInLimiter bounds the sign-ins at providers of each network, and those of all strangers. It
// is per process and bounded.
type signInLimiter struct {
	now       func() time.Time
	strangers *rate.Limiter

	mu       sync.Mutex // guards networks
	networks map[string]*rate.Limiter
}

func newSignInLimiter(now func() time.Time) *signInLimiter {
	return &signInLimiter{
		now: now, strangers: rate.NewLimiter(signInsInTotal, signInsInTotal*signInBurst),
		networks: map[string]*rate.Limiter{},
	}
}

// take counts one sign-in under each of the networks that it comes from, the smallest
// first, or returns the error that asks the person to wait. People who are signed in do not
// stand in line with strangers.
func (l *signInLimiter) take(networks []string, signedIn bool) error {
	now, free := l.now(), true
	for place, name := range networks {
		free = free && l.of(name, network.Allowance(place), now).AllowN(now, 1)
	}
	if free && (signedIn || l.strangers.AllowN(now, 1)) {
		return nil
	}
	e := oauth.NewError(oauth.SlowDown, "Too many people are signing in at once.")
	e.RetryAfter = time.Second
	return e
}

func (l *signInLimiter) of(network string, factor int, now time.Time) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, ok := l.networks[network]
	if !ok {
		if len(l.networks) >= signInNetworks {
			l.shrink(now)
		}
		b = rate.NewLimiter(rate.Limit(factor*signInsOfNetwork), factor*signInsOfNetwork*signInBurst)
		l.networks[network] = b
	}
	return b
}

// shrink forgets the networks whose bucket is full again, which loses nothing, and then
// arbitrary ones: those who command so many are left to the total.
func (l *signInLimiter) shrink(now time.Time) {
	for network, b := range l.networks {
		if b.TokensAt(now) >= float64(b.Burst()) {
			delete(l.networks, network)
		}
	}
	for network := range l.networks {
		if len(l.networks) <= signInNetworks*3/4 {
			return
		}
		delete(l.networks, network)
	}
}
