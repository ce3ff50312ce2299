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
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// DefaultPerMinute is the default number of registrations per minute and network. The default burst
// is twice as large.
const DefaultPerMinute = 60

// Limits bounds the registrations from one network. The defaults leave room for hosted clients,
// whose users share few addresses and which register again at every sign-in.
type Limits struct {
	PerMinute float64 // sustained rate; 0: DefaultPerMinute
	Burst     int     // 0: twice DefaultPerMinute
	// Shared lists networks through which a service sends all its users. Each counts as one
	// network, with sharedFactor times the allowance.
	Shared []netip.Prefix
}

// SharedNetworks lists the published egress networks of hosted MCP clients. It is the default of
// the server's configuration.
var SharedNetworks = []netip.Prefix{netip.MustParsePrefix("160.79.104.0/21")} // Anthropic

const sharedFactor = 20

const (
	storedCost  = 10      // cost of each storedUnit in a row
	storedUnit  = 2 << 10 // bytes
	maxStored   = 8 << 10 // maximum bytes of one registration; the largest known one has two kilobytes
	maxNetworks = 10_000
)

// everyone is the key of the allowance for everything that strangers have stored.
const everyone = "*"

// limiter is a token bucket for each client network, and one for everything that strangers store,
// across all networks. Stored registrations cost the operator of the server space, and networks
// cost an attacker little (RFC 7591 §5).
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

// ofNetworks returns the allowance of a network: factor times the smallest network's.
func (l *limiter) ofNetworks(factor int) bounded.Rate {
	return bounded.PerSecond(float64(factor)*l.perSecond, factor*l.burst)
}

// ofEveryone returns the allowance of storedUnits for all strangers together.
func (l *limiter) ofEveryone() bounded.Rate { return bounded.PerSecond(l.perSecond/6, 32*l.burst) }

// networks returns the networks that an address counts toward: its shared network, or else the
// blocks around it, smallest first.
func (l *limiter) networks(a netip.Addr) (names []string, shared bool) {
	a = a.Unmap().WithZone("")
	for _, p := range l.shared {
		if p.Contains(a) {
			return []string{p.String()}, true
		}
	}
	return network.Blocks(a), false
}

// draws returns the cost of a registration that stores units in a row. With units 0, it counts as
// one registration.
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

// take charges a registration that stores units in a row, completely or not at all. A client that
// waits as long as required is therefore admitted. Otherwise take returns an error with the time to
// wait. The cost is known only after the request is read, which is cheap compared to a wait that
// turns out too short.
func (l *limiter) take(ctx context.Context, from origin, units int) error {
	wait := l.buckets.Take(ctx, l.draws(from, units)...)
	if wait == 0 {
		return nil
	}
	e := oauth.NewError(oauth.SlowDown, "Too many registrations from this network. Please try again later.")
	e.RetryAfter = max(wait, time.Second)
	return e
}

// takeFor charges a failed request as a registration that stores nothing. It returns err, or the
// rate limit error if the limit is exceeded.
func (l *limiter) takeFor(ctx context.Context, from origin, err error) error {
	if slow := l.take(ctx, from, 0); slow != nil {
		return slow
	}
	return err
}

// kept returns how many storedUnits a client takes in a row, or an error if it is larger than
// maxStored.
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

// peer returns the remote address of the connection.
func peer(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr()
}
