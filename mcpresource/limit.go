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

// Limits bounds what each caller may do, which MCP demands for tool calls (RS-189) and
// completions (RS-190). A caller is a person of an issuer through whichever applications, or a
// machine ([Principal.Person]), never a session or a header. A zero member is its default,
// a negative one no limit.
//
// A request counts as under way before its body is read, and its bytes count in [Bodies] until it
// is over. A caller counts for as long as there is something to give back; of more than 50,000
// such callers the one with least to lose is forgotten. Sessions are bounded by Config.MaxSessions,
// Config.MaxAnonymousSessions and [NewMemorySessions].
type Limits struct {
	// Calls bounds tool calls, completions and new sessions together. Default: 200 a
	// second, 1000 at once. Beyond it: 429 with Retry-After.
	Calls Rate
	// Tools bounds those tools as well, by name or pattern as in Rules; the tools of a
	// pattern share what it allows.
	Tools map[string]Rate
	// Concurrent bounds the requests under way, open streams among them, and those whose
	// bodies are still on their way. Default: 200. Beyond it: 429.
	Concurrent int
	// Timeout ends the context of a POST, unless it is subscriptions/listen; when nothing
	// has been answered by then the answer is 504. Default: none but Overtime.
	Timeout time.Duration
	// Overtime is how long a request may go on after its token has expired, unless it is a stream that listens (GET
	// and subscriptions/listen), which ends with the token. A revocation ends both, before and after the token has
	// expired. Validators that cannot see it after that, such as NewIntrospectionValidator and your own, limit Overtime
	// to a minute. Default: 10 minutes; negative: none.
	Overtime time.Duration
	// Strangers bounds the requests without a good token from one address (of IPv6 the /64), which
	// get 429 instead of 401. Default: none, because behind a proxy all callers have its address:
	// have the server set Request.RemoteAddr first.
	Strangers Rate
}

// Rate is how often something may happen.
type Rate struct {
	PerSecond float64 // negative: any number
	Burst     int     // at once, after a rest. Default: five seconds' worth, at least 1
}

// Limiter bounds how often a caller may do things.
type Limiter interface {
	// Allow counts one operation and reports whether it may go ahead, or else how long
	// to wait.
	Allow(ctx context.Context, p *Principal, op Operation) (retryAfter time.Duration, ok bool)
}

// LimitError is returned by Guard.Admit when a caller does too much.
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

func (l Limits) withDefaults() Limits {
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

// check refuses a rate that would be none by oversight, and rates that do nothing beside another limiter.
func (l Limits) check(other Limiter) error {
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

// rates is the limiter in memory.
type rates struct {
	Limits
	patterns []string // of Tools, what says most first
	buckets  *buckets
}

func newRates(l Limits, now func() time.Time) *rates {
	byLength := func(a, b string) int { return len(b) - len(a) }
	return &rates{
		l, slices.SortedStableFunc(slices.Values(slices.Sorted(maps.Keys(l.Tools))), byLength), newBuckets(now),
	}
}

// Allow implements Limiter. An operation that one of the two rates refuses counts in
// neither.
func (l *rates) Allow(_ context.Context, p *Principal, op Operation) (time.Duration, bool) {
	var most [2]bounded.Draw[bucket]
	wait := l.buckets.Take(l.draws(most[:0], p, op)...)
	return wait, wait == 0
}

// draws adds the rates that an operation counts in, two at most, which need no memory then.
func (l *rates) draws(to []bounded.Draw[bucket], p *Principal, op Operation) []bounded.Draw[bucket] {
	switch op.Method {
	case "tools/call":
		if name, ok := l.tool(op.Name); ok {
			to = append(to, l.Tools[name].draw(bucket{p.Person(), name}))
		}
	case "completion/complete", "initialize":
	default:
		return to
	}
	return append(to, l.Calls.draw(bucket{who: p.Person()}))
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

// begin counts a request as under way until release. It comes before the body is read, or
// one caller could have any number of them wait for theirs.
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

// person is whom a request counts for; those without a token are one.
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

// Admit counts op for the caller in ctx in the limits of the guard. It is for adapters
// of transports that have no HTTP request, as stdio; a request that came through
// Protect has been counted. Call release when op has ended. The error is a *LimitError
// or ErrNoCaller.
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

// limitStrangers turns the 401 of an address that has had too many of them into a 429.
func (g *Guard) limitStrangers(r *http.Request, p *passage, refused *refusal) *refusal {
	if refused.status != http.StatusUnauthorized || g.c.Limits.Strangers.PerSecond <= 0 {
		return refused
	}
	if wait := g.refusals.Take(g.c.Limits.Strangers.draw(bucket{who: network(r.RemoteAddr)})); wait > 0 {
		return p.limited("Too many requests.", max(wait, time.Second))
	}
	return refused
}

// network is the address that a stranger is counted by: of IPv6 each has a /64. It is not
// network.Blocks of the server, which counts a /24 together: an MCP server has few callers, who
// have done nothing yet but ask, and the packages of the server are not linked here.
func network(remote string) string {
	a, err := netip.ParseAddrPort(remote)
	if err != nil {
		return cut(remote, 64)
	}
	ip := a.Addr().Unmap()
	if ip.Is6() {
		prefix, _ := ip.WithZone("").Prefix(64) // 64 is a length that IPv6 has
		return prefix.String()
	}
	return ip.String()
}

// tally counts what is under way, for each caller.
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

// bucket is one count of one caller.
type bucket struct{ who, what string }

// buckets counts what callers do.
type buckets = bounded.Limiter[bucket]

func newBuckets(now func() time.Time) *buckets { return bounded.NewLimiter[bucket](maxBuckets, now) }

// draw is one of what the rate allows in a bucket.
func (r Rate) draw(from bucket) bounded.Draw[bucket] {
	if r.PerSecond <= 0 {
		return bounded.Draw[bucket]{Key: from}
	}
	return bounded.Draw[bucket]{Key: from, Rate: bounded.PerSecond(r.PerSecond, r.burst())}
}

func (r Rate) burst() int {
	if r.Burst <= 0 {
		return int(min(max(r.PerSecond*burstSeconds, 1), maxBurst))
	}
	return min(r.Burst, maxBurst)
}
