// Package limits bounds how often callers call, and the memory and sessions that they use.
package limits

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/logged"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/rules"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/token"
)

// Limits limits the requests of each caller. MCP requires limits for tool calls (RS-189) and
// completions (RS-190). A caller is a user of an issuer with all their applications, or a machine
// ([Principal.Person]), never a session or a header. A zero member means its default, a negative
// one no limit.
//
// A request counts as running before its body is read, and its bytes count in [Bodies] until it
// ends. Up to 50,000 rate counters are kept: one per caller, and one per caller and entry of Tools.
// Further callers replace counters that are almost unused, never one that makes a caller wait.
// Sessions are limited by Config.MaxSessions, Config.MaxAnonymousSessions and [NewMemorySessions].
type Limits struct {
	// Calls limits tool calls, completions and new sessions together. Default: 200 a second, 1000
	// at once. Beyond it: 429 with Retry-After.
	Calls Rate
	// Tools also limits these tools, by name or pattern as in Rules. All tools of a pattern share
	// its limit.
	Tools map[string]Rate
	// Concurrent is the maximum number of running requests, including open streams and requests
	// whose body is still arriving. Default: 200. Beyond it: 429.
	Concurrent int
	// Timeout ends the context of a POST, except subscriptions/listen. If the handler has sent no
	// response by then, the response is 504. Default: none, only Overtime applies.
	Timeout time.Duration
	// Overtime is how long a request may continue after its token has expired. Listening streams
	// (GET and subscriptions/listen) end with the token. A revocation ends both, before and after
	// the token has expired. Validators that cannot see revocations after the expiry, such as
	// NewIntrospectionValidator and custom ones, limit Overtime to a minute. Default: 10 minutes;
	// negative: none.
	Overtime time.Duration
	// Strangers limits requests without a valid token from one address (for IPv6 the /64). Beyond
	// it they get 429 instead of 401. Default: none, because behind a proxy all callers have the
	// proxy's address: set Request.RemoteAddr first.
	Strangers Rate
}

// Rate is a rate limit.
type Rate struct {
	PerSecond float64 // negative: unlimited
	Burst     int     // at once, after a pause. Default: five seconds' worth, at least 1
}

// Limiter limits how often callers may do operations.
type Limiter interface {
	// Allow counts one operation. It reports whether the operation may proceed, or how long to
	// wait.
	Allow(ctx context.Context, p *token.Principal, op rules.Operation) (retryAfter time.Duration, ok bool)
}

// LimitError means that a caller exceeds a limit. Guard.Admit returns it.
type LimitError struct{ RetryAfter time.Duration }

// Error implements error.
func (e *LimitError) Error() string {
	return fmt.Sprintf("mcpresource: too many requests, wait %s", e.RetryAfter)
}

const (
	DefaultRate       = 200
	defaultConcurrent = 200
	defaultOvertime   = 10 * time.Minute
	BurstSeconds      = 5
)

func LimitsWithDefaults(l Limits) Limits {
	if l.Calls.PerSecond == 0 {
		l.Calls.PerSecond = DefaultRate
	}
	if l.Concurrent == 0 {
		l.Concurrent = defaultConcurrent
	}
	if l.Overtime == 0 {
		l.Overtime = defaultOvertime
	}
	return l
}

// CheckLimits returns an error for a rate without PerSecond, and for rates that another limiter makes
// ineffective.
func CheckLimits(l Limits, other Limiter) error {
	if other != nil && (l.Calls != Rate{} || l.Tools != nil) {
		return errors.New("mcpresource: Limits.Calls and Limits.Tools do nothing beside a Limiter: leave them out")
	}
	for name, r := range l.Tools {
		if r.PerSecond == 0 {
			return fmt.Errorf("mcpresource: Limits: the rate of tool %q has no PerSecond", name)
		}
	}
	return nil
}

// rates is the in-memory limiter.
type rates struct {
	Limits
	patterns []string // of Tools, most specific first
	buckets  *Buckets
}

func NewRates(l Limits, now func() time.Time) *rates {
	byLength := func(a, b string) int { return len(b) - len(a) }
	return &rates{
		l, slices.SortedStableFunc(slices.Values(slices.Sorted(maps.Keys(l.Tools))), byLength), NewBuckets(now),
	}
}

// Allow implements Limiter. An operation that one of the two rates refuses counts in neither.
func (l *rates) Allow(_ context.Context, p *token.Principal, op rules.Operation) (time.Duration, bool) {
	var most [2]bounded.Draw[bucket]
	wait := l.buckets.Take(l.draws(most[:0], p, op)...)
	return wait, wait == 0
}

// draws appends the rates that an operation counts in. There are at most two, so to can be on the
// stack.
func (l *rates) draws(to []bounded.Draw[bucket], p *token.Principal, op rules.Operation) []bounded.Draw[bucket] {
	switch op.Method {
	case "tools/call":
		if name, ok := l.tool(op.Name); ok {
			to = append(to, Draw(l.Tools[name], bucket{p.Person(), name}))
		}
	case "completion/complete", "initialize":
	default:
		return to
	}
	return append(to, Draw(l.Calls, bucket{who: p.Person()}))
}

func (l *rates) tool(name string) (pattern string, ok bool) {
	if _, ok := l.Tools[name]; ok {
		return name, true
	}
	i := slices.IndexFunc(l.patterns, func(p string) bool { return rules.Matches(p, name) })
	if i < 0 {
		return "", false
	}
	return l.patterns[i], true
}

// network returns the key for counting an address without a valid token: the address, or for IPv6
// its /64. It differs from network.Blocks of the server, which counts a /24 together: an MCP server
// has few callers, and the server's packages are not linked here.
func network(remote string) string {
	a, err := netip.ParseAddrPort(remote)
	if err != nil {
		return logged.Cut(remote, 64)
	}
	ip := a.Addr().Unmap()
	if ip.Is6() {
		prefix, _ := ip.WithZone("").Prefix(64) // 64 is always valid for IPv6
		return prefix.String()
	}
	return ip.String()
}

// Tally counts running things by caller.
type Tally struct {
	mu sync.Mutex // guards n
	n  map[string]int
}

// Add adds d to the count of key, and returns the new count.
func (t *Tally) Add(key string, d int) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n == nil {
		t.n = map[string]int{}
	}
	n := t.n[key] + d
	if t.n[key] = n; n == 0 {
		delete(t.n, key)
	}
	return n
}

// Len returns the number of keys with a count.
func (t *Tally) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.n)
}

const (
	maxBuckets = 50_000
	maxBurst   = 50_000
)

// bucket identifies one count of one caller.
type bucket struct{ who, what string }

// Buckets counts the operations of callers.
type Buckets = bounded.Limiter[bucket]

func NewBuckets(now func() time.Time) *Buckets { return bounded.NewLimiter[bucket](maxBuckets, now) }

// ByAddress returns the bucket of an address without a valid token.
func ByAddress(remote string) bucket { return bucket{who: network(remote)} }

// Draw returns one unit of the rate from a bucket.
func Draw(r Rate, from bucket) bounded.Draw[bucket] {
	if r.PerSecond <= 0 {
		return bounded.Draw[bucket]{Key: from}
	}
	return bounded.Draw[bucket]{Key: from, Rate: bounded.PerSecond(r.PerSecond, burst(r))}
}

func burst(r Rate) int {
	if r.Burst <= 0 {
		return int(min(max(r.PerSecond*BurstSeconds, 1), maxBurst))
	}
	return min(r.Burst, maxBurst)
}
