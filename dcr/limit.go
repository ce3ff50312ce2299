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
	// Shared are networks through which a service sends all its users. They count as
	// one each, with sharedFactor times the allowance.
	Shared []netip.Prefix
}

// SharedNetworks are the published egress networks of hosted MCP clients; it is the
// default of the server's configuration.
var SharedNetworks = []netip.Prefix{netip.MustParsePrefix("160.79.104.0/21")} // Anthropic

const sharedFactor = 20

const (
	storedCost  = 10 // what a registration that needs a row counts as
	maxNetworks = 10_000
)

// limiter is a token bucket for each client network, in bounded memory.
type limiter struct {
	perSecond rate.Limit
	burst     int
	shared    []netip.Prefix
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
	return &limiter{perSecond: rate.Limit(l.PerMinute / 60), burst: l.Burst, shared: l.Shared, now: now, buckets: map[string]*rate.Limiter{}}
}

// network is what an address is counted by: the shared network that it is in, else a
// /24, or the /64 that one IPv6 subscriber has to themselves.
func (l *limiter) network(a netip.Addr) (name string, shared bool) {
	a = a.Unmap().WithZone("")
	for _, p := range l.shared {
		if p.Contains(a) {
			return p.String(), true
		}
	}
	bits := 24
	if a.Is6() {
		bits = 64
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return "unknown", false
	}
	return p.String(), false
}

// take counts n registrations from somewhere, or returns the error that says how long
// to wait.
func (l *limiter) take(from origin, n int) error {
	factor := 1
	if from.shared {
		factor = sharedFactor
	}
	n = min(n, factor*l.burst) // more could never be had
	now := l.now()
	b := l.bucket(from.network, factor, now)
	if b.AllowN(now, n) {
		return nil
	}
	e := oauth.NewError(oauth.SlowDown, "Too many registrations from this network. Please try again later.")
	missing := float64(n) - b.TokensAt(now)
	e.RetryAfter = max(time.Second, time.Duration(missing/float64(b.Limit())*float64(time.Second)))
	return e
}

func (l *limiter) bucket(network string, factor int, now time.Time) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, ok := l.buckets[network]
	if !ok {
		if len(l.buckets) >= maxNetworks {
			l.shrink(now)
		}
		b = rate.NewLimiter(rate.Limit(factor)*l.perSecond, factor*l.burst)
		l.buckets[network] = b
	}
	return b
}

// shrink forgets the networks whose bucket is full again, which loses nothing, and
// then arbitrary ones down to three quarters: memory stays bounded, and whoever
// commands ten thousand networks is not stopped by counting them.
func (l *limiter) shrink(now time.Time) {
	for network, b := range l.buckets {
		if b.TokensAt(now) >= float64(b.Burst()) {
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

// peer is the address of the other end of the connection.
func peer(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr()
}
