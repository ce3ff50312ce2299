package main

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

// service looks at what the database has, as health show does.
func (d *doctor) service() *admin.Service {
	s := &admin.Service{Config: d.app.config, Now: d.now}
	if store := d.app.store; d.current {
		s.Store = store
		s.Now = func() time.Time { return store.Correct(d.now()) }
	}
	return s
}

// found adds what an operation finds, too.
func (d *doctor) found(check string, found []admin.Finding, err error) {
	d.findings = append(d.findings, found...)
	if err != nil {
		d.fail(check, "", "%s", oneLine(err))
	}
}

// passkeys says whether passkeys are offered, and who loses what by the host name that is configured
// (PE-01, PE-02).
func (d *doctor) passkeys(ctx context.Context) {
	found, err := d.service().PasskeyFindings(ctx)
	d.found("passkeys", found, err)
}

// receivers sees whether receivers of security events take what they are told.
func (d *doctor) receivers(ctx context.Context) {
	found, err := d.service().ReceiverFindings(ctx)
	d.found("events", found, err)
}

// replicas sees which servers have the database.
func (d *doctor) replicas(ctx context.Context) {
	found, err := d.service().ReplicaFindings(ctx)
	d.found("replicas", found, err)
}

// sinks sees whether the sinks of the audit log get what is in it.
func (d *doctor) sinks(ctx context.Context) {
	if _, err := d.app.parts().AuditSinks(); err != nil {
		d.fail("audit", "the server does not start with it", "%s", oneLine(err))
		return
	}
	found, err := d.service().SinkFindings(ctx)
	d.found("audit", found, err)
}
