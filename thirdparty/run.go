package thirdparty

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

const (
	rounds  = time.Second // interval between background checks
	batch   = 32
	workers = 8
	// unknownAgain is when a session without a configured connector is checked again.
	unknownAgain = time.Hour
)

// Run checks the sessions that are due until the context ends. Sessions that providers have ended
// thus end here even if no client presents a dependent token, and tokens are renewed before they
// expire. Any number of replicas may call Run. It returns when its current work is done.
func (d *Delegation) Run(ctx context.Context) error {
	for tick := time.NewTicker(rounds); ; {
		d.collectAbandoned(ctx)
		d.handBack(ctx)
		for d.round(ctx) == batch && ctx.Err() == nil {
		}
		select {
		case <-ctx.Done():
			tick.Stop()
			return nil
		case <-tick.C:
		}
	}
}

// round checks up to a batch of sessions that are due and returns how many it has settled. Sessions
// that another replica has reserved, or that a failing store did not let it claim, do not count:
// the next query would return them immediately.
func (d *Delegation) round(ctx context.Context) int {
	err := d.settle(ctx)
	var due []storage.Upstream
	if err == nil {
		due, err = d.cfg.Store.DueUpstreams(ctx, d.now(), batch)
	}
	if err != nil {
		if ctx.Err() == nil {
			d.cfg.Logger.WarnContext(ctx, "provider sessions could not be read", "error", err)
		}
		return 0
	}
	// All replicas find the same sessions. In random order they rarely want the same one.
	rand.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
	var group sync.WaitGroup
	var settled atomic.Int64
	slots := make(chan struct{}, workers)
	for _, u := range due {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			if d.tend(ctx, u) {
				settled.Add(1)
			}
		})
	}
	group.Wait()
	return int(settled.Load())
}

// tend checks one session and reports whether it reached a result. The result is stored, or logged
// where it occurred.
func (d *Delegation) tend(ctx context.Context, u storage.Upstream) bool {
	var err error
	if c, known := d.byID[u.Connector]; known {
		err = d.inquire(context.WithoutCancel(ctx), c, u)
	} else {
		err = d.shelve(ctx, u)
	}
	switch {
	case err == nil, errors.Is(err, errUnanswered), errors.Is(err, storage.ErrRevoked):
		return true
	case !errors.Is(err, errHeld):
		d.cfg.Logger.WarnContext(ctx, "provider session could not be checked", "connector", u.Connector,
			"provider_session", u.ID, "error", err)
	}
	return false
}

// shelve postpones a session whose connector is not configured. Otherwise it would always be due,
// before sessions that can be checked. The session does not end, because the connector may return.
func (d *Delegation) shelve(ctx context.Context, u storage.Upstream) error {
	if err := d.take(ctx, u); err != nil {
		return err
	}
	return d.putOff(ctx, u)
}

// putOff releases a session for a while.
func (d *Delegation) putOff(ctx context.Context, u storage.Upstream) error {
	u.DueAt, u.Sealed = d.now().Add(unknownAgain), d.current(u)
	return d.cfg.Store.SaveUpstream(ctx, u)
}
