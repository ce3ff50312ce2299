package main

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

// sinks sees whether the sinks of the audit log get what is in it.
func (d *doctor) sinks(ctx context.Context) {
	configured := d.app.config.AuditSinks()
	if len(configured) == 0 {
		return
	}
	service := &admin.Service{Store: d.app.store, Config: d.app.config}
	found, err := admin.AuditSinks.Do(ctx, service.Operator(), admin.None{})
	if err != nil {
		d.fail("audit", "", "what waits for sinks of the audit log cannot be read: %s", oneLine(err))
		return
	}
	if _, err := d.app.parts().AuditSinks(); err != nil {
		d.fail("audit", "the server does not start with it", "%s", oneLine(err))
		return
	}
	fine := true
	for _, s := range found.Items {
		if !s.Opened {
			fine = false
			d.warn("audit", "start the server again: it reads the configuration once",
				"no server delivers to sink %s yet", s.ID)
			continue
		}
		var age time.Duration
		if !s.Oldest.IsZero() {
			age = max(d.now().Sub(s.Oldest), 0)
		}
		if s.Failed != "" || age > behind {
			fine = false
			why := s.Failed
			if why == "" {
				why = "no server delivers to it"
			}
			d.warn("audit", "they wait in the audit log until they are removed by their age",
				"%d entries wait for sink %s, the oldest since %s: %s", s.Waiting, s.ID,
				d.now().Add(-age).UTC().Format(time.RFC3339), why)
		}
		if s.Lost > 0 {
			fine = false
			d.warn("audit", "write what is missing with: mcp-authd audit export",
				"sink %s never got %d entries: they were removed, or cannot be read", s.ID, s.Lost)
		}
	}
	if fine {
		d.ok("audit", "%d sinks of the audit log get what is in it", len(configured))
	}
}
