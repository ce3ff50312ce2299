package thirdparty

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
)

const (
	// tolerated is how many questions in a row may stay without an answer before a
	// provider is left alone for a while: no request then waits for it.
	tolerated = 3
	restTime  = 10 * time.Second
)

// health is how a provider has answered lately, as this process sees it.
type health struct {
	mu       sync.Mutex
	failures int // in a row
	until    time.Time
}

// resting reports whether the provider is left alone.
func (h *health) resting(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return now.Before(h.until)
}

// failed counts a question without an answer and reports whether it is the first.
func (h *health) failed(now time.Time) (first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failures++; h.failures >= tolerated {
		h.until = now.Add(restTime)
	}
	return h.failures == 1
}

func (h *health) answered() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failures, h.until = 0, time.Time{}
}

// well notes that a provider has answered.
func (d *Delegation) well(c *connector) { d.health[c.ID].answered() }

// unwell notes that a question to a provider brought nothing. Operators learn of an outage
// once, when it begins, and of everything that they have to mend.
func (d *Delegation) unwell(ctx context.Context, c *connector, cause error) {
	switch {
	case errors.Is(cause, errUnreachable):
		if d.health[c.ID].failed(d.now()) {
			d.record(ctx, audit.UpstreamUnreachable, c)
		}
		d.cfg.Logger.LogAttrs(ctx, slog.LevelInfo, "provider cannot be reached", slog.String("connector", c.ID), slog.Any("cause", cause))
	case errors.Is(cause, errMisconfigured), errors.Is(cause, errGarbage):
		d.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "provider gives no good answer", slog.String("connector", c.ID), slog.Any("cause", cause))
	}
}
