package assembly

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/growth"
)

const (
	firstSize = time.Minute
	sizeEvery = time.Hour
	sizeTime  = 10 * time.Second
)

// watchSize notes the size of the database each day, and sets its metrics each hour, until ctx ends.
func (s *Server) watchSize(ctx context.Context) {
	for next := firstSize; ; next = sizeEvery {
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
		bounded, cancel := context.WithTimeout(ctx, sizeTime)
		g, err := growth.Note(bounded, s.parts.Store, s.parts.Now())
		cancel()
		switch {
		case err != nil && ctx.Err() == nil:
			s.parts.Log.WarnContext(ctx, "the size of the database is not known", "error", err)
		case err == nil && s.parts.Metrics != nil:
			s.parts.Metrics.Database(g.Used, g.PerDay, g.Free)
		}
	}
}
