package provider

import (
	"maps"
	"sync"
	"time"
)

const (
	// tolerated is how many sessions in a row may get no answer. After that the provider is left
	// alone for a while, so that no request waits for it.
	tolerated = 3
	restTime  = 10 * time.Second
	// probeEvery is how often a provider is asked while it is left alone.
	probeEvery = time.Second
)

// Health records how a provider has recently answered this process about existing sessions.
// Sign-ins do not count, because strangers cause them.
type Health struct {
	mu         sync.Mutex           // guards the fields below
	unanswered map[string]bool      // sessions without an answer since the provider's last answer
	restUntil  time.Time            // the provider is left alone until then
	nextProbe  time.Time            // except for one question
	askAfter   map[string]time.Time // earliest time to ask about a session
	sweepAt    int                  // size of askAfter that triggers removal of past entries
}

// NewHealth returns the Health of a provider that was not asked yet.
func NewHealth() *Health {
	return &Health{unanswered: map[string]bool{}, askAfter: map[string]time.Time{}, sweepAt: firstSweep}
}

const firstSweep = 1024

// MayAsk reports whether a question about a session is currently allowed.
func (h *Health) MayAsk(session string, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lets(session, now)
}

// lets requires h.mu.
func (h *Health) lets(session string, now time.Time) bool {
	resting := now.Before(h.restUntil) && now.Before(h.nextProbe)
	return !resting && !now.Before(h.askAfter[session])
}

// Ask reports whether to ask about a session now. While the provider is left alone, it allows one
// question per second.
func (h *Health) Ask(session string, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.lets(session, now) {
		return false
	}
	if now.Before(h.restUntil) {
		h.nextProbe = now.Add(probeEvery)
	}
	return true
}

// Failed records a question about a session that got no answer. It reports whether this is the
// first failure since the provider's last answer. Several sessions must fail before the provider is
// left alone, because the cause may be in one session.
func (h *Health) Failed(session string, now time.Time) (first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	first = len(h.unanswered) == 0
	if len(h.unanswered) < tolerated {
		h.unanswered[session] = true
	}
	if len(h.unanswered) >= tolerated {
		h.restUntil, h.nextProbe = now.Add(restTime), now.Add(probeEvery)
	}
	h.wait(session, now, restTime)
	return first
}

// State reports whether questions currently get no answer, and whether the provider is left alone.
func (h *Health) State(now time.Time) (unanswered, resting bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.unanswered) > 0, now.Before(h.restUntil)
}

// Postponed delays questions about a session after the provider complained about too many.
func (h *Health) Postponed(session string, now time.Time, d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wait(session, now, d)
}

// wait requires h.mu.
func (h *Health) wait(session string, now time.Time, d time.Duration) {
	h.askAfter[session] = now.Add(d)
	if len(h.askAfter) >= h.sweepAt {
		maps.DeleteFunc(h.askAfter, func(_ string, t time.Time) bool { return !now.Before(t) })
		h.sweepAt = max(firstSweep, 2*len(h.askAfter))
	}
}

// Answered records that the provider has answered about a session. Questions are then allowed
// again.
func (h *Health) Answered(session string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.unanswered)
	delete(h.askAfter, session)
	h.restUntil, h.nextProbe = time.Time{}, time.Time{}
}

// TooOften is a provider's refusal to answer because it was asked too often, by this client or with
// one user's token (RFC 6585 §4). It is an ErrUnreachable that does not affect the provider's
// health.
type TooOften struct {
	Wait time.Duration // demanded by the provider; 0: unspecified
}

// Error implements error.
func (*TooOften) Error() string { return "the provider was asked too often" }

// Is implements errors.Is for ErrUnreachable.
func (*TooOften) Is(target error) bool { return target == ErrUnreachable }
