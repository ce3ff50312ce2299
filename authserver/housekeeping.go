package authserver

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/pace"
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
	// sweepLease is for how long a replica sweeps without a word: longer than the interval, so
	// that it stays with one as long as that is there.
	sweepLease = 90 * time.Second
	// cutInterval is how often it is asked whether a cut has to be followed, one small read.
	cutInterval = time.Second
	// outageInterval is how often a store that is away is asked whether it is back.
	outageInterval = 2 * time.Second
)

// Run does the housekeeping until ctx ends: it removes expired records in small
// batches, marks the grants of what was cut as a whole, rotates the signing key when it is
// due, and records what commands on the same store did. Each has a loop of its own, so that
// none waits for another. Any number of replicas may run it at once; one of them sweeps, and
// one follows cuts.
func (s *Server) Run(ctx context.Context) {
	var loops sync.WaitGroup
	loops.Go(func() { every(ctx, keyInterval, s.tend) })
	loops.Go(func() { every(ctx, sweepInterval, s.sweep) })
	loops.Go(func() { every(ctx, cutInterval, s.followCuts) })
	loops.Go(func() { every(ctx, outageInterval, s.followOutage) })
	loops.Go(func() { s.cfg.Attempts.Run(ctx) })
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
	if err := s.cfg.Store.Tend(ctx); err != nil {
		s.log.WarnContext(ctx, "what the schema has put off is not done yet", "error", err)
	}
	if err := s.cfg.Audit.Collect(ctx, s.cfg.Store, s.cfg.Now()); err != nil {
		s.log.WarnContext(ctx, "what commands did is not logged yet", "error", err)
	}
}

// followOutage checks whether the store takes writes again. Without it, one failure on an idle server would count as an
// outage until the next refresh or readiness check.
func (s *Server) followOutage(ctx context.Context) {
	if !s.outages.Suspected() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	_ = s.writable(ctx) // its outcome is observed
}

// sweep removes what has expired, batch by batch, for as long as there is a whole one.
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

// followCuts marks the grants of what was cut as a whole. The cut has taken effect; what follows
// are the status lists.
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

// leads reports whether it is this replica that does a task.
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
