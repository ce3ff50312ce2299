// Package cutting marks the grants of cuts as revoked, in batches. A cut is in effect before its grants are marked.
package cutting

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/internal/pace"
	"github.com/mcp-authd/mcp-authd/storage"
)

const (
	task = "cuts"
	// lease is longer than a batch can take. A holder that was killed holds the others up for that long.
	lease = 15 * time.Second
	// largest bounds how long a statement holds up what else is written.
	largest = 5000
	// smallest is the batch of a database that is too slow for larger ones.
	smallest = 100
)

// Store is what a Follower needs of a store.
type Store interface {
	storage.Cuts
	storage.Leases
}

// Follower follows cuts. Of all servers and commands on a database, one does it at a time: two of them would wait for
// each other at each batch.
type Follower struct {
	Store  Store
	Holder string // tells it from the others
	Now    func() time.Time
	Audit  *audit.Recorder
}

// Follow follows a cut to its end. told, which may be nil, hears of each batch. held is false when another Follower is
// at it. storage.ErrNotFound: there is nothing left to do.
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
		pace.Breathe(ctx, f.Now().Sub(now))
	}
}

// Release lets another Follower begin at once. It works when ctx has ended, too.
func (f Follower) Release(ctx context.Context) error {
	now := f.Now()
	_, err := f.Store.Lease(context.WithoutCancel(ctx), task, f.Holder, now, now)
	return err
}
