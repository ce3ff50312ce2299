package chaos

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// These are the invariants. Violations are recorded during the run and fail a subtest at its end.
const (
	signedIn  = "AS-96 no person whose grant is live is asked to sign in again"
	oneWinner = "AS-90 AS-94 no code and no refresh token has two winners"
	cutOff    = "AS-226 AS-227 what is revoked is dead at once at every replica"
	reuse     = "AS-95 a refresh token used again after the grace ends its grant"
	kept      = "what was acknowledged is still true after every crash"
	weather   = "without PostgreSQL: 503 with Retry-After and not ready, and ready again without a restart"
	verified  = "AS-121 an access token verifies with the keys of every replica"
)

var invariants = []string{signedIn, oneWinner, cutOff, reuse, kept, weather, verified}

// reported is the maximum number of printed violations per invariant.
const reported = 10

// ledger records the responses to the clients, and the violations.
type ledger struct {
	started time.Time
	grace   time.Duration // of refresh tokens

	mu      sync.Mutex // guards the fields below
	broken  map[string][]string
	winners map[string]winner    // by code or refresh token
	first   map[string]time.Time // when a refresh token was first presented
	away    []span               // when PostgreSQL was stopped

	registered, signIns, refreshes, parallel, lost, late, raced, repeated, introspected, checked, revoked, reused,
	overdue, kills, restarts, hangs, failovers, rotations, unavailable, doubtful, slowest atomic.Int64
}

// winner is the result of a code or refresh token.
type winner struct{ refresh, tokenID string }

// span is a time without PostgreSQL. It has no end while it lasts.
type span struct{ from, to time.Time }

func newLedger(grace time.Duration) *ledger {
	return &ledger{started: time.Now(), grace: grace, broken: map[string][]string{}, winners: map[string]winner{},
		first: map[string]time.Time{}}
}

// breach records the violation of an invariant.
func (l *ledger) breach(invariant, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := time.Since(l.started).Round(time.Millisecond)
	l.broken[invariant] = append(l.broken[invariant], fmt.Sprintf("%s: "+format, append([]any{at}, args...)...))
}

// won records the result of a code or refresh token, which must always be the same. A refresh token
// that waited for PostgreSQL longer than the grace gets its successor and a new access token,
// because the original one may have expired.
func (l *ledger) won(presented string, w winner) {
	l.mu.Lock()
	before, known := l.winners[presented]
	l.winners[presented] = w
	first, refreshed := l.first[presented]
	l.mu.Unlock()
	if refreshed && time.Since(first) > l.grace {
		before.tokenID = w.tokenID
	}
	if known && before != w {
		l.breach(oneWinner, "%.12s... was turned into %v and into %v", presented, before, w)
	}
}

// firstPresented returns when a client first presented a refresh token. If it is new, this is now.
func (l *ledger) firstPresented(token string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.first[token]; !known {
		l.first[token] = time.Now()
	}
	return l.first[token]
}

// leave and arrive mark the start and the end of a time without PostgreSQL.
func (l *ledger) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = append(l.away, span{from: time.Now()})
}

func (l *ledger) arrive() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away[len(l.away)-1].to = time.Now()
}

// recovery is how long connections to the old PostgreSQL may be broken after its return.
const recovery = 3 * time.Second

// stormy reports whether PostgreSQL was away at some time since then.
func (l *ledger) stormy(since time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.away {
		if s.to.IsZero() || since.Before(s.to.Add(recovery)) {
			return true
		}
	}
	return false
}

// absences describes when PostgreSQL was away, relative to the start of the run.
func (l *ledger) absences() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, s := range l.away {
		out = append(out, fmt.Sprintf("%.1f to %.1f s", s.from.Sub(l.started).Seconds(), s.to.Sub(l.started).Seconds()))
	}
	return strings.Join(out, ", ")
}

// wasAway reports whether PostgreSQL was away at a time, or back for less than recovery.
func (l *ledger) wasAway(at time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.away {
		if at.After(s.from) && (s.to.IsZero() || at.Before(s.to.Add(recovery))) {
			return true
		}
	}
	return false
}

// answered checks the status of one response.
func (l *ledger) answered(r request, a answer, took time.Duration, began time.Time) {
	switch {
	case a.status == 503 && !l.stormy(began):
		l.breach(weather, "%s %s: 503 after %s although PostgreSQL is there: %s", r.method, r.path, took, a.body)
	case a.status == 503 && a.header.Get("Retry-After") == "":
		l.breach(weather, "%s %s: 503 without Retry-After: %.200s", r.method, r.path, a.body)
	case a.status == 503:
		l.unavailable.Add(1)
	case a.status >= 500:
		l.breach(weather, "%s %s: %d %.200s", r.method, r.path, a.status, a.body)
	case !l.stormy(began):
		for ms := took.Milliseconds(); ; {
			before := l.slowest.Load()
			if ms <= before || l.slowest.CompareAndSwap(before, ms) {
				return
			}
		}
	}
}

func (l *ledger) String() string {
	return fmt.Sprintf(
		"%d registrations, %d sign-ins (%d begun again without being asked), %d refreshes (%d in parallel groups, %d replies lost, %d laggards), "+
			"%d came too late, %d codes raced, %d introspections, %d tokens verified, %d revocations, %d tokens used again too late; %d replicas killed, PostgreSQL stopped %d times, hung %d times and lost its primary %d times, keys rotated %d times; "+
			"%d answers were 503, %d requests repeated without knowing how the first ended; slowest answer %d ms",
		l.registered.Load(), l.signIns.Load(), l.repeated.Load(), l.refreshes.Load(), l.parallel.Load(),
		l.lost.Load(), l.late.Load(), l.overdue.Load(),
		l.raced.Load(), l.introspected.Load(), l.checked.Load(), l.revoked.Load(), l.reused.Load(), l.kills.Load(),
		l.restarts.Load(), l.hangs.Load(), l.failovers.Load(), l.rotations.Load(),
		l.unavailable.Load(), l.doubtful.Load(), l.slowest.Load())
}
