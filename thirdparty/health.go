package thirdparty

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
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

// health is how a provider has answered lately about sessions that exist, as this process
// sees it. Sign-ins say nothing about it: they are made of what strangers send.
type health struct {
	mu         sync.Mutex           // guards what follows
	unanswered map[string]bool      // sessions, since the provider last answered about one
	restUntil  time.Time            // it is left alone
	nextProbe  time.Time            // ... but for one question
	askAfter   map[string]time.Time // sessions that are not asked about before
	sweepAt    int                  // the size at which askAfter is rid of what is past
}

func newHealth() *health {
	return &health{unanswered: map[string]bool{}, askAfter: map[string]time.Time{}, sweepAt: firstSweep}
}

const firstSweep = 1024

// mayAsk reports whether a question about a session would be let through.
func (h *health) mayAsk(session string, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lets(session, now)
}

// lets needs h.mu.
func (h *health) lets(session string, now time.Time) bool {
	resting := now.Before(h.restUntil) && now.Before(h.nextProbe)
	return !resting && !now.Before(h.askAfter[session])
}

// ask reports whether a question about a session may be asked now. Of those that would
// be let through while the provider is left alone, one each second is.
func (h *health) ask(session string, now time.Time) bool {
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

// failed counts a question about a session that stayed without an answer, and reports
// whether it is the first since the provider last gave one. Several sessions have to stay
// without, for there may be a reason in one of them.
func (h *health) failed(session string, now time.Time) (first bool) {
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

// postponed has a session left alone that the provider was asked about too often.
func (h *health) postponed(session string, now time.Time, d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wait(session, now, d)
}

// wait needs h.mu.
func (h *health) wait(session string, now time.Time, d time.Duration) {
	h.askAfter[session] = now.Add(d)
	if len(h.askAfter) >= h.sweepAt {
		maps.DeleteFunc(h.askAfter, func(_ string, t time.Time) bool { return !now.Before(t) })
		h.sweepAt = max(firstSweep, 2*len(h.askAfter))
	}
}

// answered notes that the provider has answered about a session, which ends its rest.
func (h *health) answered(session string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.unanswered)
	delete(h.askAfter, session)
	h.restUntil, h.nextProbe = time.Time{}, time.Time{}
}

// tooOften is the refusal of a provider to answer now, because it was asked too often: by
// this client, or with one person's token (RFC 6585 §4). It is an errUnreachable that says
// nothing about the provider's health.
type tooOften struct {
	wait time.Duration // as the provider says; 0: it does not
}

// Error implements error.
func (*tooOften) Error() string { return "the provider was asked too often" }

// Is implements errors.Is for errUnreachable.
func (*tooOften) Is(target error) bool { return target == errUnreachable }

// pause is for how long a session is left alone about which was asked too often: for as
// long as the provider says, but no longer than a session goes without a question anyway.
func (e *tooOften) pause(c *connector) time.Duration {
	if e.wait == 0 {
		return min(retryAfter, c.CheckEvery)
	}
	return min(max(e.wait, time.Second), c.CheckEvery)
}

// unwell notes that a question about a session brought nothing. Operators learn of an
// outage once, when it begins, and of everything that they have to mend.
func (d *Delegation) unwell(ctx context.Context, c *connector, session string, cause error) {
	var often *tooOften
	switch {
	case errors.As(cause, &often):
		d.health[c.ID].postponed(session, d.now(), often.pause(c))
	case errors.Is(cause, errUnreachable):
		if d.health[c.ID].failed(session, d.now()) {
			d.record(ctx, audit.UpstreamUnreachable, c)
		}
	}
	d.complain(ctx, c, cause)
}

// complain writes to the log what a provider did instead of answering.
func (d *Delegation) complain(ctx context.Context, c *connector, cause error) {
	switch {
	case errors.Is(cause, errUnreachable):
		d.cfg.Logger.LogAttrs(ctx, slog.LevelInfo, "provider cannot be reached", slog.String("connector", c.ID), slog.Any("cause", cause))
	case errors.Is(cause, errMisconfigured), errors.Is(cause, errGarbage):
		d.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "provider gives no good answer", slog.String("connector", c.ID), slog.Any("cause", cause))
	}
}
