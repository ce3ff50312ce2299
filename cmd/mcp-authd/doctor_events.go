package main

import (
	"context"
	"time"
)

// behind is for how long an event may wait before doctor warns.
const behind = 5 * time.Minute

// receivers sees whether receivers of security events take what they are told.
func (d *doctor) receivers(ctx context.Context) {
	configured := d.app.config.Events.Receivers
	if len(configured) == 0 {
		return
	}
	waiting, err := d.app.store.Backlogs(ctx, d.now())
	if err != nil {
		d.fail("events", "", "what waits for receivers cannot be read: %s", oneLine(err))
		return
	}
	late := false
	for _, b := range waiting {
		if !b.Oldest.IsZero() && d.now().Sub(b.Oldest) > behind {
			late = true
			d.warn("events", "see: mcp-authd events list", "%d security events wait for receiver %s, the oldest since %s: %s",
				b.Waiting, b.Receiver, b.Oldest.Format(time.RFC3339), b.Failed)
		}
	}
	if !late {
		d.ok("events", "%d receivers of security events have what they were told", len(configured))
	}
}
