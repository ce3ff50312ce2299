package dcr

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/allowance"
	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/network"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// DefaultPerMinute is how many registrations a minute one network has when Limits does not say;
// twice as many are taken at once.
const DefaultPerMinute = 60

// Limits bounds the registrations from one network. The defaults leave room for
// hosted clients, whose users share few addresses and which register again with
// every sign-in.
type Limits struct {
	PerMinute float64 // sustained; 0 means DefaultPerMinute
	Burst     int     // at once; 0 means twice DefaultPerMinute
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

// everyone is the key that counts everything that strangers have stored.
const everyone = "*"

// limiter is a token bucket for each client network, and one for all that strangers can have
// stored, wherever they are: what a registration leaves in the database costs the operator, and
// networks cost an attacker little (RFC 7591 §5).
type limiter struct {
	perSecond float64
	burst     int
	shared    []netip.Prefix
	buckets   *allowance.Limiter
}

func newLimiter(l Limits, shared *allowance.Limits) *limiter {
	if l.PerMinute <= 0 {
		l.PerMinute = DefaultPerMinute
	}
	if l.Burst <= 0 {
		l.Burst = 2 * DefaultPerMinute
	}
	return &limiter{
		perSecond: l.PerMinute / 60,
		burst:     l.Burst,
		shared:    l.Shared,
		buckets:   shared.Limiter("registrations", maxNetworks),
	}
}

// ofNetworks is the allowance of a network, factor times that of the smallest.
func (l *limiter) ofNetworks(factor int) bounded.Rate {
	return bounded.PerSecond(float64(factor)*l.perSecond, factor*l.burst)
}

// ofEveryone is how many storedUnits strangers may have stored.
func (l *limiter) ofEveryone() bounded.Rate { return bounded.PerSecond(l.perSecond/6, 32*l.burst) }

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

// draws are what a registration counts as that keeps some units in a row; none: as one.
func (l *limiter) draws(from origin, units int) (out []allowance.Draw) {
	for place, name := range from.networks {
		factor := network.Allowance(place)
		if from.shared {
			factor = sharedFactor
		}
		out = append(out, allowance.Draw{Key: name, Rate: l.ofNetworks(factor), N: storedCost * units})
	}
	if !from.shared && units > 0 {
		out = append(out, allowance.Draw{Key: everyone, Rate: l.ofEveryone(), N: units})
	}
	return out
}

// take counts a registration that keeps some units in a row: all that it costs or nothing, so
// that a client that waits as it is told gets in. Else it returns the error that says how
// long to wait. What a registration costs is known when it has been read, which is cheap
// beside a wait that does not suffice.
func (l *limiter) take(ctx context.Context, from origin, units int) error {
	wait := l.buckets.Take(ctx, l.draws(from, units)...)
	if wait == 0 {
		return nil
	}
	e := oauth.NewError(oauth.SlowDown, "Too many registrations from this network. Please try again later.")
	e.RetryAfter = max(wait, time.Second)
	return e
}

// takeFor counts a request that failed as a registration that keeps nothing, and returns what it
// is answered with: err within the limit.
func (l *limiter) takeFor(ctx context.Context, from origin, err error) error {
	if slow := l.take(ctx, from, 0); slow != nil {
		return slow
	}
	return err
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

// peer is the address of the other end of the connection.
func peer(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr()
}
