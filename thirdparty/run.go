package thirdparty

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
)

const (
	rounds  = time.Second // how often the background checks look for what is due
	batch   = 32
	workers = 8
	// unknownAgain is when a session is looked at again whose connector is not configured.
	unknownAgain = time.Hour
)

// Run checks the sessions that are due until the context ends: those that providers have ended end
// here even if no client presents a token that rests on them, and tokens are renewed before they
// expire. Any number of replicas may run it. It returns when what it has begun is done.
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

// round checks up to a batch of sessions that are due and returns how many it has settled:
// not those that others hold, or that a store in trouble did not let it claim, which would
// be found again at once.
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
	// Replicas find the same sessions; in another order they rarely want the same one.
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

// tend checks one session and reports whether something was found out. What it finds is
// stored, or logged where it was found.
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

// shelve puts a session off whose connector is not in the configuration, or it would be
// due forever, before those that can be checked. It does not end: it may come back.
func (d *Delegation) shelve(ctx context.Context, u storage.Upstream) error {
	if err := d.take(ctx, u); err != nil {
		return err
	}
	return d.putOff(ctx, u)
}

// putOff gives a session up for a while.
func (d *Delegation) putOff(ctx context.Context, u storage.Upstream) error {
	u.DueAt, u.Sealed = d.now().Add(unknownAgain), d.current(u)
	return d.cfg.Store.SaveUpstream(ctx, u)
}
