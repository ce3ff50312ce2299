package thirdparty

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/thirdparty/internal/provider"
)

// pause is for how long a session is left alone about which was asked too often: for as
// long as the provider says, but no longer than a session goes without a question anyway.
func (c *connector) pause(e *provider.TooOften) time.Duration {
	if e.Wait == 0 {
		return min(retryAfter, c.CheckEvery)
	}
	return min(max(e.Wait, time.Second), c.CheckEvery)
}

// unwell notes that a question about a session brought nothing. Operators learn of an
// outage once, when it begins, and of everything that they have to mend.
func (d *Delegation) unwell(ctx context.Context, c *connector, session string, cause error) {
	var often *provider.TooOften
	switch {
	case errors.As(cause, &often):
		d.health[c.ID].Postponed(session, d.now(), c.pause(often))
	case errors.Is(cause, provider.ErrUnreachable):
		var unread *provider.Unread
		told := errors.As(cause, &unread) && !unread.Tell() // by a sign-in that failed
		if d.health[c.ID].Failed(session, d.now()) && !told {
			d.record(ctx, audit.ProviderUnreachable, c)
		}
	}
	d.complain(ctx, c, cause)
}

// unmet notes that a sign-in failed at a provider. What strangers send says nothing about its health, but metadata or
// keys that cannot be had do: operators learn of that outage once, too.
func (d *Delegation) unmet(ctx context.Context, c *connector, cause error) {
	var unread *provider.Unread
	if errors.As(cause, &unread) && unread.Tell() {
		if known, _ := d.health[c.ID].State(d.now()); !known {
			d.record(ctx, audit.ProviderUnreachable, c)
		}
	}
	d.complain(ctx, c, cause)
}

// complain writes to the log what a provider did instead of answering.
func (d *Delegation) complain(ctx context.Context, c *connector, cause error) {
	switch {
	case errors.Is(cause, provider.ErrUnreachable):
		d.cfg.Logger.LogAttrs(ctx, slog.LevelInfo, "provider cannot be reached", slog.String("connector", c.ID),
			audit.Reference(ctx), slog.Any("cause", cause))
	case errors.Is(cause, provider.ErrMisconfigured), errors.Is(cause, provider.ErrGarbage):
		d.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "provider gives no good answer", slog.String("connector", c.ID),
			audit.Reference(ctx), slog.Any("cause", cause))
	}
}
