package provider

import (
	"maps"
	"sync"
	"time"
)

const (
	// tolerated is how many sessions may stay without an answer, with no answer about
	// another one in between, before their provider is left alone for a while: no request
	// then waits for it.
	tolerated = 3
	restTime  = 10 * time.Second
	// probeEvery is how often a provider that is left alone is asked all the same.
	probeEvery = time.Second
)

// Health is how a provider has answered lately about sessions that exist, as this process
// sees it. Sign-ins say nothing about it: they are made of what strangers send.
type Health struct {
	mu         sync.Mutex           // guards what follows
	unanswered map[string]bool      // sessions, since the provider last answered about one
	restUntil  time.Time            // it is left alone
	nextProbe  time.Time            // ... but for one question
	askAfter   map[string]time.Time // sessions that are not asked about before
	sweepAt    int                  // the size at which askAfter is rid of what is past
}

// NewHealth returns that of a provider that has not been asked yet.
func NewHealth() *Health {
	return &Health{unanswered: map[string]bool{}, askAfter: map[string]time.Time{}, sweepAt: firstSweep}
}

const firstSweep = 1024

// MayAsk reports whether a question about a session would be let through.
func (h *Health) MayAsk(session string, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lets(session, now)
}

// lets needs h.mu.
func (h *Health) lets(session string, now time.Time) bool {
	resting := now.Before(h.restUntil) && now.Before(h.nextProbe)
	return !resting && !now.Before(h.askAfter[session])
}

// Ask reports whether a question about a session may be asked now. Of those that would
// be let through while the provider is left alone, one each second is.
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

// Failed counts a question about a session that stayed without an answer, and reports
// whether it is the first since the provider last gave one. Several sessions have to stay
// without, for there may be a reason in one of them.
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

// State reports whether questions stay without an answer, and whether the provider is left alone now.
func (h *Health) State(now time.Time) (unanswered, resting bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.unanswered) > 0, now.Before(h.restUntil)
}

// Postponed has a session left alone that the provider was asked about too often.
func (h *Health) Postponed(session string, now time.Time, d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wait(session, now, d)
}

// wait needs h.mu.
func (h *Health) wait(session string, now time.Time, d time.Duration) {
	h.askAfter[session] = now.Add(d)
	if len(h.askAfter) >= h.sweepAt {
		maps.DeleteFunc(h.askAfter, func(_ string, t time.Time) bool { return !now.Before(t) })
		h.sweepAt = max(firstSweep, 2*len(h.askAfter))
	}
}

// Answered notes that the provider has answered about a session, which ends its rest.
func (h *Health) Answered(session string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.unanswered)
	delete(h.askAfter, session)
	h.restUntil, h.nextProbe = time.Time{}, time.Time{}
}

// TooOften is the refusal of a provider to answer now, because it was asked too often: by
// this client, or with one person's token (RFC 6585 §4). It is an ErrUnreachable that says
// nothing about the provider's health.
type TooOften struct {
	Wait time.Duration // as the provider says; 0: it does not
}

// Error implements error.
func (*TooOften) Error() string { return "the provider was asked too often" }

// Is implements errors.Is for ErrUnreachable.
func (*TooOften) Is(target error) bool { return target == ErrUnreachable }
