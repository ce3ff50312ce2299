package assembly

import (
	"context"
	"time"
)

// drained returns a context that ends limits.drain after asked has ended. In between readiness is red and
// everything else continues, so that a proxy that has not seen red yet still gets answers (OP-07). A server that
// is asked to stop before it serves does not drain.
func (s *Server) drained(asked context.Context) (context.Context, context.CancelFunc) {
	drain := time.Duration(s.parts.Config.Limits.Drain)
	if drain == 0 || asked.Err() != nil {
		return context.WithCancel(asked)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(asked))
	stop := context.AfterFunc(asked, func() {
		defer cancel()
		s.Auth.Drain()
		s.parts.Log.Info("draining: not ready any more, and requests are answered for limits.drain; "+
			"a second signal ends the server at once", "drain", drain.String())
		select {
		case <-s.after(drain):
		case <-ctx.Done(): // it has failed
		}
	})
	return ctx, func() {
		stop()
		cancel()
	}
}
