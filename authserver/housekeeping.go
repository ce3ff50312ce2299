package authserver

import (
	"context"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
)

const (
	// keyInterval is how often it is asked whether a key is due, and what commands have done.
	// It costs two small reads.
	keyInterval   = 5 * time.Second
	sweepInterval = time.Minute
	// sweepBatch bounds how long a statement of a sweep holds up what else is written: some
	// tens of milliseconds.
	sweepBatch = 2000
	// leaseTime is for how long a replica leads a task without a word: longer than its
	// interval, so that it stays with one as long as that is there.
	leaseTime = 90 * time.Second
)

// Run does the housekeeping until ctx ends: it removes expired records in small
// batches, rotates the signing key when it is due, and records what commands on the same
// store did. Each has a loop of its own, so that none waits for another. Any number of
// replicas may run it at once; one of them sweeps.
func (s *Server) Run(ctx context.Context) {
	var loops sync.WaitGroup
	loops.Go(func() { every(ctx, keyInterval, s.tend) })
	loops.Go(func() { every(ctx, sweepInterval, s.sweep) })
	loops.Wait()
}

// every does a task at each interval until ctx ends.
func every(ctx context.Context, interval time.Duration, task func(context.Context)) {
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			task(ctx)
		}
	}
}

func (s *Server) tend(ctx context.Context) {
	if err := s.keys.Tend(ctx); err != nil {
		s.log.WarnContext(ctx, "keys not tended", "error", err)
	}
	if err := s.cfg.Audit.Collect(ctx, s.cfg.Store, s.cfg.Now()); err != nil {
		s.log.WarnContext(ctx, "what commands did is not logged yet", "error", err)
	}
}

// sweep removes what has expired, batch by batch, for as long as there is a whole one.
func (s *Server) sweep(ctx context.Context) {
	for s.leads(ctx, "sweep") {
		now := s.cfg.Now()
		began := time.Now()
		n, err := s.cfg.Store.Sweep(ctx, storage.Retention{
			Now: now, Rotated: now.Add(-s.cfg.Tokens.RefreshGrace),
			ClientUnused: now.Add(-s.cfg.ClientUnusedTTL), ClientIdle: now.Add(-s.cfg.ClientIdleTTL),
		}, sweepBatch)
		if err != nil {
			s.log.WarnContext(ctx, "sweep failed", "error", err)
			return
		}
		if n < sweepBatch {
			return
		}
		breathe(ctx, time.Since(began))
	}
}

// leads reports whether it is this replica that does a task.
func (s *Server) leads(ctx context.Context, task string) bool {
	if ctx.Err() != nil {
		return false
	}
	now := s.cfg.Now()
	held, err := s.cfg.Store.Lease(ctx, task, s.replica, now, now.Add(leaseTime))
	if err != nil {
		s.log.WarnContext(ctx, task+" put off", "error", err)
	}
	return held && err == nil
}

// breathe leaves the store to others for half as long as a batch took: SQLite has one writer.
func breathe(ctx context.Context, took time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(min(took/2, time.Second)):
	}
}
