package assembly

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/transmit"
)

// backlogEvery is the interval of counting queued security events.
const backlogEvery = 15 * time.Second

// Transmitter returns the transmitter of security events, which sign signs. It is nil without a
// receiver.
func (p Parts) Transmitter(sign transmit.Sign) *transmit.Transmitter {
	if len(p.Config.Events.Receivers) == 0 {
		return nil
	}
	return transmit.New(transmit.Config{
		Issuer: p.Config.Issuer, Receivers: p.Config.Receivers(), Store: p.Store, Sign: sign, Log: p.Log,
		Audit: p.Audit, Now: p.Now,
	})
}

// runTransmitter sends security events until ctx ends. The returned function waits for pending
// requests.
func (s *Server) runTransmitter(ctx context.Context) (settle func()) {
	t := s.parts.Transmitter(s.Auth.SignSecurityEvent)
	if t == nil {
		return func() {}
	}
	if err := t.Name(ctx); err != nil {
		s.parts.Log.WarnContext(ctx, "receivers of security events are not named", "error", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.Run(ctx)
	}()
	go s.countBacklog(ctx)
	return func() { <-done }
}

func (s *Server) countBacklog(ctx context.Context) {
	if s.parts.Metrics == nil {
		return
	}
	for ctx.Err() == nil {
		if all, err := s.parts.Store.Backlogs(ctx, s.parts.Now()); err == nil {
			s.parts.Metrics.Backlog(all, s.parts.Now())
		}
		select {
		case <-ctx.Done():
		case <-time.After(backlogEvery):
		}
	}
}
