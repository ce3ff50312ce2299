package assembly

import (
	"context"
	"time"
)

// drained returns a context that ends limits.drain after asked has ended. In between, the server
// reports that it is not ready, but serves requests, so that a proxy that has not noticed yet still
// gets responses (OP-07). A server that is stopped before it serves does not drain.
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
		case <-ctx.Done(): // the server has failed
		}
	})
	return ctx, func() {
		stop()
		cancel()
	}
}
