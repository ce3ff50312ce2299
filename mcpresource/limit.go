package mcpresource

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/message"

	"github.com/mcp-authd/mcp-authd/internal/bounded"
)

// Limits restricts what each caller may do, as MCP requires for tool calls (RS-189) and completions
// (RS-190). A caller is a user of an issuer with all their applications, or a machine
// ([Principal.Person]), never a session or a header. A zero member means its default, a negative
// one no limit.
//
// A request counts as running before its body is read, and its bytes count in [Bodies] until it
// ends. A caller is remembered until its rates are full again. Beyond 50,000 callers, the one that
// has used least is forgotten. Sessions are limited by Config.MaxSessions,
// Config.MaxAnonymousSessions and [NewMemorySessions].
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
	// Timeout ends the context of a POST, except subscriptions/listen. If nothing was answered by
	// then, the response is 504. Default: none, only Overtime applies.
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
	Allow(ctx context.Context, p *Principal, op Operation) (retryAfter time.Duration, ok bool)
}

// LimitError means that a caller exceeds a limit. Guard.Admit returns it.
type LimitError struct{ RetryAfter time.Duration }

// Error implements error.
func (e *LimitError) Error() string {
	return fmt.Sprintf("mcpresource: too many requests, wait %s", e.RetryAfter)
}

const (
	defaultRate       = 200
	defaultConcurrent = 200
	defaultOvertime   = 10 * time.Minute
	burstSeconds      = 5
)

func limitsWithDefaults(l Limits) Limits {
	if l.Calls.PerSecond == 0 {
		l.Calls.PerSecond = defaultRate
	}
	if l.Concurrent == 0 {
		l.Concurrent = defaultConcurrent
	}
	if l.Overtime == 0 {
		l.Overtime = defaultOvertime
	}
	return l
}

// checkLimits returns an error for a rate without PerSecond, and for rates that another limiter makes
// ineffective.
func checkLimits(l Limits, other Limiter) error {
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
	buckets  *buckets
}

func newRates(l Limits, now func() time.Time) *rates {
	byLength := func(a, b string) int { return len(b) - len(a) }
	return &rates{
		l, slices.SortedStableFunc(slices.Values(slices.Sorted(maps.Keys(l.Tools))), byLength), newBuckets(now),
	}
}

// Allow implements Limiter. An operation that one of the two rates refuses counts in neither.
func (l *rates) Allow(_ context.Context, p *Principal, op Operation) (time.Duration, bool) {
	var most [2]bounded.Draw[bucket]
	wait := l.buckets.Take(l.draws(most[:0], p, op)...)
	return wait, wait == 0
}

// draws appends the rates that an operation counts in. There are at most two, so to can be on the
// stack.
func (l *rates) draws(to []bounded.Draw[bucket], p *Principal, op Operation) []bounded.Draw[bucket] {
	switch op.Method {
	case "tools/call":
		if name, ok := l.tool(op.Name); ok {
			to = append(to, draw(l.Tools[name], bucket{p.Person(), name}))
		}
	case "completion/complete", "initialize":
	default:
		return to
	}
	return append(to, draw(l.Calls, bucket{who: p.Person()}))
}

func (l *rates) tool(name string) (pattern string, ok bool) {
	if _, ok := l.Tools[name]; ok {
		return name, true
	}
	i := slices.IndexFunc(l.patterns, func(p string) bool { return matches(p, name) })
	if i < 0 {
		return "", false
	}
	return l.patterns[i], true
}

// begin counts a request as running until release. It runs before the body is read: otherwise one
// caller could have any number of requests waiting for their bodies.
func (g *Guard) begin(p *passage) *refusal {
	if p.principal == nil || g.c.Limits.Concurrent <= 0 {
		return nil
	}
	p.underway = p.person()
	if g.underway.add(p.underway, 1) > g.c.Limits.Concurrent {
		return p.limited("Too many requests at once.", time.Second)
	}
	return nil
}

// rate counts the operations of a message.
func (g *Guard) rate(ctx context.Context, p *passage) *refusal {
	if p.principal == nil {
		return nil
	}
	for _, m := range p.envelope.Messages {
		if wait, ok := g.c.Limiter.Allow(ctx, p.principal, operationOf(m)); !ok {
			return p.limited("Too many requests.", max(wait, time.Second))
		}
	}
	return nil
}

// person returns the key that a request counts under. All requests without a token share one.
func (p *passage) person() string {
	if p.principal == nil {
		return anonymous
	}
	return p.who
}

func (p *passage) limited(text string, wait time.Duration) *refusal {
	return &refusal{
		outcome: OutcomeLimited, status: http.StatusTooManyRequests, id: p.envelope.ID, text: text, retry: wait,
	}
}

// Admit counts op for the caller in ctx against the guard's limits. It is for adapters of
// transports without HTTP requests, such as stdio; requests through Protect are already counted.
// Call release when op has ended. The error is a *LimitError or ErrNoCaller.
func (g *Guard) Admit(ctx context.Context, op Operation) (release func(), err error) {
	p, ok := FromContext(ctx)
	if !ok {
		return nil, ErrNoCaller
	}
	pass := &passage{principal: p, who: p.Person(), envelope: message.Envelope{Messages: []message.Message{
		{Method: op.Method, Name: op.Name, Arguments: op.Arguments},
	}}}
	refused := g.begin(pass)
	if refused == nil {
		refused = g.rate(ctx, pass)
	}
	if refused != nil {
		g.release(pass)
		return nil, &LimitError{refused.retry}
	}
	return sync.OnceFunc(func() { g.release(pass) }), nil
}

// limitStrangers replaces a 401 with a 429 for an address that had too many of them.
func (g *Guard) limitStrangers(r *http.Request, p *passage, refused *refusal) *refusal {
	if refused.status != http.StatusUnauthorized || g.c.Limits.Strangers.PerSecond <= 0 {
		return refused
	}
	if wait := g.refusals.Take(draw(g.c.Limits.Strangers, bucket{who: network(r.RemoteAddr)})); wait > 0 {
		return p.limited("Too many requests.", max(wait, time.Second))
	}
	return refused
}

// network returns the key for counting an address without a valid token: the address, or for IPv6
// its /64. It differs from network.Blocks of the server, which counts a /24 together: an MCP server
// has few callers, and the server's packages are not linked here.
func network(remote string) string {
	a, err := netip.ParseAddrPort(remote)
	if err != nil {
		return cut(remote, 64)
	}
	ip := a.Addr().Unmap()
	if ip.Is6() {
		prefix, _ := ip.WithZone("").Prefix(64) // 64 is always valid for IPv6
		return prefix.String()
	}
	return ip.String()
}

// tally counts running things by caller.
type tally struct {
	mu sync.Mutex // guards n
	n  map[string]int
}

func (t *tally) add(key string, d int) int {
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

const (
	maxBuckets = 50_000
	maxBurst   = 50_000
)

// bucket identifies one count of one caller.
type bucket struct{ who, what string }

// buckets counts the operations of callers.
type buckets = bounded.Limiter[bucket]

func newBuckets(now func() time.Time) *buckets { return bounded.NewLimiter[bucket](maxBuckets, now) }

// draw returns one unit of the rate from a bucket.
func draw(r Rate, from bucket) bounded.Draw[bucket] {
	if r.PerSecond <= 0 {
		return bounded.Draw[bucket]{Key: from}
	}
	return bounded.Draw[bucket]{Key: from, Rate: bounded.PerSecond(r.PerSecond, burst(r))}
}

func burst(r Rate) int {
	if r.Burst <= 0 {
		return int(min(max(r.PerSecond*burstSeconds, 1), maxBurst))
	}
	return min(r.Burst, maxBurst)
}
