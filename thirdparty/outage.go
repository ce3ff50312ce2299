package thirdparty

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/thirdparty/internal/provider"
)

// pause returns how long to wait after a provider complained about too many questions on a session:
// as long as the provider asks, but not longer than CheckEvery.
func (c *connector) pause(e *provider.TooOften) time.Duration {
	if e.Wait == 0 {
		return min(retryAfter, c.CheckEvery)
	}
	return min(max(e.Wait, time.Second), c.CheckEvery)
}

// unwell records that a question about a session failed. Administrators get one event at the
// beginning of an outage, and a log entry for everything that they have to fix.
func (d *Delegation) unwell(ctx context.Context, c *connector, session string, cause error) {
	var often *provider.TooOften
	switch {
	case errors.As(cause, &often):
		d.health[c.ID].Postponed(session, d.now(), c.pause(often))
	case errors.Is(cause, provider.ErrUnreachable):
		var unread *provider.Unread
		told := errors.As(cause, &unread) && !unread.Tell() // a failed sign-in has already reported it
		if d.health[c.ID].Failed(session, d.now()) && !told {
			d.record(ctx, audit.ProviderUnreachable, c)
		}
	}
	d.complain(ctx, c, cause)
}

// unmet records that a sign-in failed at a provider. Requests of strangers say nothing about its
// health, but unavailable metadata or keys do. Administrators get one event about such an outage.
func (d *Delegation) unmet(ctx context.Context, c *connector, cause error) {
	var unread *provider.Unread
	if errors.As(cause, &unread) && unread.Tell() {
		if known, _ := d.health[c.ID].State(d.now()); !known {
			d.record(ctx, audit.ProviderUnreachable, c)
		}
	}
	d.complain(ctx, c, cause)
}

// complain logs the failure of a provider.
func (d *Delegation) complain(ctx context.Context, c *connector, cause error) {
	switch {
	case errors.Is(cause, provider.ErrUnreachable):
		d.cfg.Logger.LogAttrs(ctx, slog.LevelInfo, "provider cannot be reached", slog.String("connector", c.ID),
			request.Of(ctx).ReferenceAttr(), slog.Any("cause", cause))
	case errors.Is(cause, provider.ErrMisconfigured), errors.Is(cause, provider.ErrGarbage):
		d.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "provider gives no good answer", slog.String("connector", c.ID),
			request.Of(ctx).ReferenceAttr(), slog.Any("cause", cause))
	}
}
