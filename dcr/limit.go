package dcr

import (
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/mcp-authd/mcp-authd/internal/network"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Limits bounds the registrations from one network. The defaults leave room for
// hosted clients, whose users share few addresses and which register again with
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
	storedCost  = 10      // what each storedUnit that is kept in a row counts as
	storedUnit  = 2 << 10 // bytes
	maxStored   = 8 << 10 // bytes of one registration; the largest that is known has two
	maxNetworks = 10_000
)

// limiter is a token bucket for each client network, in bounded memory, and one for all that
// strangers can have stored, wherever they are: what a registration leaves in the database
// costs the operator, and networks cost an attacker little (RFC 7591 §5).
type limiter struct {
	perSecond rate.Limit
	burst     int
	shared    []netip.Prefix
	now       func() time.Time
	stored    *rate.Limiter // storedUnits of all networks

	mu      sync.Mutex // guards buckets, and that all of a charge is taken or none
	buckets map[string]*rate.Limiter
}

func newLimiter(l Limits, now func() time.Time) *limiter {
	if l.PerMinute <= 0 {
		l.PerMinute = 60
	}
	if l.Burst <= 0 {
		l.Burst = 120
	}
	return &limiter{
		perSecond: rate.Limit(l.PerMinute / 60),
		burst:     l.Burst,
		shared:    l.Shared,
		now:       now,
		stored:    rate.NewLimiter(rate.Limit(l.PerMinute/60/6), 32*l.Burst),
		buckets:   map[string]*rate.Limiter{},
	}
}

// networks are what an address is counted by: the shared network that it is in, else those
// around it, the smallest first.
func (l *limiter) networks(a netip.Addr) (names []string, shared bool) {
	a = a.Unmap().WithZone("")
	for _, p := range l.shared {
		if p.Contains(a) {
			return []string{p.String()}, true
		}
	}
	return network.Blocks(a), false
}

// draw is what is to be taken from a bucket.
type draw struct {
	bucket *rate.Limiter
	n      int
}

func (d draw) missing(now time.Time) time.Duration {
	short := float64(d.n) - d.bucket.TokensAt(now)
	if short <= 0 {
		return 0
	}
	return max(time.Second, time.Duration(short/float64(d.bucket.Limit())*float64(time.Second)))
}

// draws are what a registration counts as that keeps some units in a row; none: as one.
func (l *limiter) draws(from origin, units int, now time.Time) []draw {
	var out []draw
	for place, name := range from.networks {
		factor := network.Allowance(place)
		if from.shared {
			factor = sharedFactor
		}
		b := l.bucket(name, factor, now)
		out = append(out, draw{b, min(max(storedCost*units, 1), b.Burst())}) // more could never be had
	}
	if !from.shared && units > 0 {
		out = append(out, draw{l.stored, units})
	}
	return out
}

// take counts a registration that keeps some units in a row: all that it costs or nothing, so
// that a client that waits as it is told gets in. Else it returns the error that says how
// long to wait. What a registration costs is known when it has been read, which is cheap
// beside a wait that does not suffice.
func (l *limiter) take(from origin, units int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	var wait time.Duration
	all := l.draws(from, units, now)
	for _, d := range all {
		wait = max(wait, d.missing(now))
	}
	if wait > 0 {
		e := oauth.NewError(oauth.SlowDown, "Too many registrations from this network. Please try again later.")
		e.RetryAfter = wait
		return e
	}
	for _, d := range all {
		d.bucket.AllowN(now, d.n)
	}
	return nil
}

// kept is how many units a client takes in a row, or an error when they are too many.
func kept(c storage.Client) (units int, err error) {
	size := len(c.ID) + len(c.Name) + len(c.Scopes.String()) + len(c.Metadata) + len(c.JWKS) + len(c.JWKSURI)
	for _, u := range c.RedirectURIs {
		size += len(u)
	}
	if size > maxStored {
		return 0, badMetadata(fmt.Sprintf("All that is registered together has more than %d bytes.", maxStored))
	}
	return size/storedUnit + 1, nil
}

// bucket is that of a network. The caller holds the lock.
func (l *limiter) bucket(name string, factor int, now time.Time) *rate.Limiter {
	b, ok := l.buckets[name]
	if !ok {
		if len(l.buckets) >= maxNetworks {
			l.shrink(now)
		}
		b = rate.NewLimiter(rate.Limit(factor)*l.perSecond, factor*l.burst)
		l.buckets[name] = b
	}
	return b
}

// shrink forgets the networks whose bucket is full again, which loses nothing, and
// then arbitrary ones down to three quarters: memory stays bounded, and whoever
// commands ten thousand networks is not stopped by counting them.
func (l *limiter) shrink(now time.Time) {
	for name, b := range l.buckets {
		if b.TokensAt(now) >= float64(b.Burst()) {
			delete(l.buckets, name)
		}
	}
	for name := range l.buckets {
		if len(l.buckets) <= maxNetworks*3/4 {
			return
		}
		delete(l.buckets, name)
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
