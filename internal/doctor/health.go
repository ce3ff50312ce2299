package doctor

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/label"
)

// service returns the service for checks of the database, as in health show.
func (d *doctor) service() *admin.Service {
	s := &admin.Service{Config: d.in.Config, Now: d.now}
	if store := d.in.Store; d.current {
		s.Store = store
		s.Now = func() time.Time { return store.Correct(d.now()) }
		s.AuditChecker = d.in.Parts().AuditChecker
	}
	return s
}

// found adds the findings of an operation.
func (d *doctor) found(check string, found []admin.Finding, err error) {
	d.findings = append(d.findings, found...)
	if err != nil {
		d.fail(check, "", "%s", label.FirstLine(err))
	}
}

// passkeys reports whether passkeys are offered, and who cannot use theirs with the configured host
// name (PE-01, PE-02).
func (d *doctor) passkeys(ctx context.Context) {
	found, err := d.service().PasskeyFindings(ctx)
	d.found("passkeys", found, err)
}

// growth says how fast the database grows.
func (d *doctor) growth(ctx context.Context) {
	found, err := d.service().SizeFindings(ctx)
	d.found("growth", found, err)
}

// receivers sees whether receivers of security events take what they are told.
func (d *doctor) receivers(ctx context.Context) {
	found, err := d.service().ReceiverFindings(ctx)
	d.found("events", found, err)
}

// replicas lists the servers that use the database.
func (d *doctor) replicas(ctx context.Context) {
	found, err := d.service().ReplicaFindings(ctx)
	d.found("replicas", found, err)
}

// sinks checks whether log destinations receive the entries of the audit log.
func (d *doctor) sinks(ctx context.Context) {
	if _, err := d.in.Parts().AuditSinks(); err != nil {
		d.fail("audit", "the server does not start with it", "%s", label.FirstLine(err))
		return
	}
	found, err := d.service().SinkFindings(ctx)
	d.found("audit", found, err)
	found, err = d.service().AuditFindings(ctx)
	d.found("audit", found, err)
}

// names looks for accounts with names that look like IDs (EN-06).
func (d *doctor) names(ctx context.Context) {
	found, err := d.service().NameFindings(ctx)
	d.found("names", found, err)
}

// mail checks whether mail can be sent.
func (d *doctor) mail(ctx context.Context) {
	found, err := d.service().MailFindings(ctx)
	d.found("mail", found, err)
}
