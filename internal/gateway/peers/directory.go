package peers

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
)

const (
	// readEvery is how often the table of replicas is read at most: callers choose the ids that are looked up.
	readEvery = 250 * time.Millisecond
	// goneAfter is how long a replica was not seen, which tells of itself every 18 seconds at least, until it is
	// taken for ended.
	goneAfter = 30 * time.Second
)

// directory knows the replicas. An id is of one process, so an address that is known stays right.
type directory struct {
	store storage.Replicas
	now   func() time.Time // of the store

	reads atomic.Int64 // that have begun

	mu    sync.Mutex // guards the rest; held while the table is read
	known map[string]storage.Replica
	read  time.Time // when it was last
}

// find returns a replica; ok is false for one that the table does not have.
func (d *directory) find(ctx context.Context, id string) (r storage.Replica, ok bool, err error) {
	d.mu.Lock()
	r, ok = d.known[id]
	d.mu.Unlock()
	if ok {
		return r, true, nil
	}
	return d.again(ctx, id)
}

// again returns a replica as the table has it now.
func (d *directory) again(ctx context.Context, id string) (r storage.Replica, ok bool, err error) {
	before := d.reads.Load()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.reads.Load() == before { // no other request has had it read meanwhile
		if err := d.pause(ctx, readEvery-d.now().Sub(d.read)); err != nil {
			return storage.Replica{}, false, err
		}
		if err := d.load(ctx); err != nil {
			return storage.Replica{}, false, err
		}
	}
	r, ok = d.known[id]
	return r, ok, nil
}

func (d *directory) pause(ctx context.Context, left time.Duration) error {
	if left <= 0 {
		return nil
	}
	timer := time.NewTimer(min(left, readEvery)) // the clock may have been set back
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// load reads the table. mu is held.
func (d *directory) load(ctx context.Context) error {
	d.reads.Add(1)
	d.read = d.now()
	all, _, err := d.store.Replicas(ctx, d.now())
	if err != nil {
		return fmt.Errorf("peers: the replicas cannot be read: %w", err)
	}
	d.known = map[string]storage.Replica{}
	for _, r := range all {
		d.known[r.ID] = r
	}
	return nil
}

// all returns the replicas that the table has now.
func (d *directory) all(ctx context.Context) ([]storage.Replica, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.load(ctx); err != nil {
		return nil, err
	}
	out := make([]storage.Replica, 0, len(d.known))
	for _, r := range d.known {
		out = append(out, r)
	}
	return out, nil
}

// gone reports whether a replica was not seen for so long that it has ended. Both times are by the clock of the store.
func (d *directory) gone(r storage.Replica) bool { return d.now().Sub(r.SeenAt) > goneAfter }
