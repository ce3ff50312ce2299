package dcr

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Limits bounds the registrations from one network. The defaults leave room for
// hosted clients, whose users share few addresses and which register anew with
// every sign-in.
type Limits struct {
	PerMinute float64 // sustained; default 60
	Burst     int     // at once; default 120
}

const (
	storedCost  = 10 // what a registration that needs a row counts as
	maxNetworks = 10_000
)

// limiter is a token bucket for each client network, in bounded memory.
type limiter struct {
	perSecond rate.Limit
	burst     int
	now       func() time.Time

	mu      sync.Mutex // guards buckets
	buckets map[string]*rate.Limiter
}

func newLimiter(l Limits, now func() time.Time) *limiter {
	if l.PerMinute <= 0 {
		l.PerMinute = 60
	}
	if l.Burst <= 0 {
		l.Burst = 120
	}
	return &limiter{perSecond: rate.Limit(l.PerMinute / 60), burst: l.Burst, now: now, buckets: map[string]*rate.Limiter{}}
}

// take counts n registrations of network, or returns the error that says how long
// to wait.
func (l *limiter) take(network string, n int) error {
	n = min(n, l.burst) // more could never be had
	now := l.now()
	b := l.bucket(network, now)
	if b.AllowN(now, n) {
		return nil
	}
	e := oauth.NewError(oauth.SlowDown, "Too many registrations from this network. Please try again later.")
	missing := float64(n) - b.TokensAt(now)
	e.RetryAfter = max(time.Second, time.Duration(missing/float64(l.perSecond)*float64(time.Second)))
	return e
}

func (l *limiter) bucket(network string, now time.Time) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, ok := l.buckets[network]
	if !ok {
		if len(l.buckets) >= maxNetworks {
			l.shrink(now)
		}
		b = rate.NewLimiter(l.perSecond, l.burst)
		l.buckets[network] = b
	}
	return b
}

// shrink forgets the networks whose bucket is full again, which loses nothing, and
// then arbitrary ones down to three quarters: memory stays bounded, and whoever
// commands ten thousand networks is not stopped by counting them.
func (l *limiter) shrink(now time.Time) {
	for network, b := range l.buckets {
		if b.TokensAt(now) >= float64(l.burst) {
			delete(l.buckets, network)
		}
	}
	for network := range l.buckets {
		if len(l.buckets) <= maxNetworks*3/4 {
			return
		}
		delete(l.buckets, network)
	}
}

// networkOf is the part of an address that is counted: a /24, or the /64 that one
// IPv6 subscriber has to themselves.
func networkOf(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	bits := 24
	if a.Is6() {
		bits = 64
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return "unknown"
	}
	return p.String()
}

// peer is the address of the other end of the connection.
func peer(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr()
}
