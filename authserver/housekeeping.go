package authserver

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/pace"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

const (
	// keyInterval is how often the server checks for due keys and for actions of commands. This
	// costs two small reads.
	keyInterval   = 5 * time.Second
	sweepInterval = time.Minute
	// sweepBatch limits how long a statement of a sweep blocks other writes: some tens of
	// milliseconds.
	sweepBatch = 2000
	// sweepLease is how long a replica keeps the sweep after its last run. It exceeds the interval,
	// so that the sweep stays with a running replica.
	sweepLease = 90 * time.Second
	// cutInterval is how often the server looks for revocations to complete, with one small read.
	cutInterval = time.Second
	// outageInterval is how often the server checks whether an unavailable store is back.
	outageInterval = 2 * time.Second
)

// Run does the housekeeping until ctx ends. It removes expired records in small batches, and marks
// the grants of bulk revocations. It rotates the signing key when due, and records the actions of
// commands on the same store. Each task has its own loop, so that none waits for another. Any
// number of replicas may run it at once; one of them sweeps, and one completes revocations.
func (s *Server) Run(ctx context.Context) {
	var loops sync.WaitGroup
	loops.Go(func() { every(ctx, keyInterval, s.tend) })
	loops.Go(func() { every(ctx, sweepInterval, s.sweep) })
	loops.Go(func() { every(ctx, cutInterval, s.followCuts) })
	loops.Go(func() { every(ctx, outageInterval, s.followOutage) })
	loops.Go(func() { s.cfg.Attempts.Run(ctx) })
	loops.Wait()
}

// every runs a task at each interval until ctx ends.
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
	if err := s.cfg.Store.Tend(ctx); err != nil {
		s.log.WarnContext(ctx, "what the schema has put off is not done yet", "error", err)
	}
	if err := s.cfg.Audit.Collect(ctx, s.cfg.Store, s.cfg.Now()); err != nil {
		s.log.WarnContext(ctx, "what commands did is not logged yet", "error", err)
	}
}

// followOutage checks whether the store accepts writes again. Without it, one failure on an idle
// server would count as an outage until the next refresh or readiness check.
func (s *Server) followOutage(ctx context.Context) {
	if !s.outages.Suspected() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	_ = s.writable(ctx) // records its outcome
}

// sweep removes expired records batch by batch, until a batch is not full.
func (s *Server) sweep(ctx context.Context) {
	for s.leads(ctx, "sweep", sweepLease) {
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
		pace.Breathe(ctx, time.Since(began))
	}
}

// followCuts marks the grants of bulk revocations. The revocation is in effect already; this
// updates the status lists.
func (s *Server) followCuts(ctx context.Context) {
	cuts, err := s.cfg.Store.PendingCuts(ctx, s.cfg.Now())
	if err != nil {
		s.log.WarnContext(ctx, "cuts not followed", "error", err)
	}
	for _, c := range cuts {
		_, err := s.cuts.Follow(ctx, c.ID, nil)
		if err != nil && ctx.Err() == nil && !errors.Is(err, storage.ErrNotFound) {
			s.log.WarnContext(ctx, "cut not followed", "cut", c.ID, "error", err)
		}
	}
}

// leads reports whether this replica runs a task.
func (s *Server) leads(ctx context.Context, task string, lease time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	now := s.cfg.Now()
	held, err := s.cfg.Store.Lease(ctx, task, s.replica, now, now.Add(lease))
	if err != nil {
		s.log.WarnContext(ctx, task+" put off", "error", err)
	}
	return held && err == nil
}
