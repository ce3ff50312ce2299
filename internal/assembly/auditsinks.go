package assembly

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/auditformat"
	"github.com/mcp-authd/mcp-authd/internal/auditsink"
)

// AuditSinks returns the deliverer of the audit log to log destinations, or nil without any.
func (p Parts) AuditSinks() (*auditsink.Deliverer, error) {
	if len(p.Config.Audit.Sinks) == 0 {
		return nil, nil
	}
	return auditsink.New(auditsink.Options{
		Sinks:  p.Config.AuditSinks(),
		Source: auditformat.Source{Issuer: p.Config.Issuer, Version: p.Version},
		Store:  p.Store,
		Now:    p.Now,
		Log:    p.Log,
		Stdout: p.Stdout,
	})
}

// runAuditSinks delivers until the returned function is called. That function waits a few seconds
// for the delivery of the entries in the log.
func (s *Server) runAuditSinks(ctx context.Context) (settle func()) {
	if s.sinks == nil {
		return func() {}
	}
	if err := s.sinks.Open(ctx); err != nil {
		s.parts.Log.WarnContext(ctx, "sinks of the audit log begin later", "error", err)
	}
	delivering, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.sinks.Run(delivering)
	}()
	go s.countSinks(delivering)
	return func() {
		stop()
		<-done
	}
}

// countSinks reports the progress of each log destination, which the store knows for all replicas.
func (s *Server) countSinks(ctx context.Context) {
	if s.parts.Metrics == nil {
		return
	}
	every(ctx, func() {
		ctx, cancel := context.WithTimeout(ctx, measureTimeout)
		defer cancel()
		if all, err := auditsink.States(ctx, s.parts.Store, s.parts.Config.AuditSinks()); err == nil {
			for _, k := range all {
				s.parts.Metrics.AuditSink(k.ID, k.Waiting, k.Age(s.parts.Now()), k.Lost)
			}
		}
	})
}
