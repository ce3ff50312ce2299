// Package cutting marks the grants of cuts as revoked, in batches. A cut is effective before its
// grants are marked.
package cutting

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/pace"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

const (
	task = "cuts"
	// lease is longer than a batch can take. If a holder is killed, others wait that long.
	lease = 15 * time.Second
	// largest limits how long a statement blocks other writes.
	largest = 5000
	// smallest is the batch size for slow databases.
	smallest = 100
	// quick is the time of a batch after which the next one may be twice as large.
	quick = 500 * time.Millisecond
)

// Store is the part of a store that a Follower needs.
type Store interface {
	storage.Cuts
	storage.Leases
}

// Follower marks the grants of cuts. Only one server or command on a database does so at a time,
// because two would wait for each other at each batch.
type Follower struct {
	Store  Store
	Holder string // identifies it
	Now    func() time.Time
	Audit  *audit.Recorder
}

// Follow marks all grants of a cut, and records the completed cut in the audit log. It calls told,
// which may be nil, after each batch. held is false if another Follower is at work. Follow returns
// storage.ErrNotFound if the cut is already finished.
func (f Follower) Follow(ctx context.Context, id string, told func(storage.Cut)) (held bool, err error) {
	limit := largest
	for {
		now := f.Now()
		if held, err := f.Store.Lease(ctx, task, f.Holder, now, now.Add(lease)); !held || err != nil {
			return false, err
		}
		step, err := f.Store.FollowCut(ctx, id, now, limit)
		late := errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
		switch {
		case late && limit > smallest:
			limit = max(limit/2, smallest)
			continue
		case err != nil:
			return true, err
		}
		if told != nil {
			told(step)
		}
		if step.Done {
			f.Audit.Record(ctx, audit.GrantsRevoked, audit.Cut(step))
			return true, nil
		}
		took := f.Now().Sub(now)
		if took < quick { // a database that was slow for a moment must not keep the small batches
			limit = min(limit*2, largest)
		}
		pace.Breathe(ctx, took)
	}
}

// Release lets another Follower start at once. It works even if ctx has ended.
func (f Follower) Release(ctx context.Context) error {
	now := f.Now()
	_, err := f.Store.Lease(context.WithoutCancel(ctx), task, f.Holder, now, now)
	return err
}
