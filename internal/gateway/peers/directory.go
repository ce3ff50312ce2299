package peers

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

const (
	// readEvery is the minimum time between reads of the replica table. Callers choose the ids, and
	// could otherwise cause any number of reads.
	readEvery = 250 * time.Millisecond
	// goneAfter is the time without a sign of life after which a replica counts as ended. A replica
	// reports at least every 18 seconds.
	goneAfter = 30 * time.Second
)

// directory caches the table of replicas. An id belongs to one process, so a known address stays
// valid.
type directory struct {
	store storage.Replicas
	now   func() time.Time // the store's clock

	reads atomic.Int64 // reads of the table that have begun

	mu    sync.Mutex // guards the fields below; held while the table is read
	known map[string]storage.Replica
	read  time.Time // time of the last read
}

// find returns a replica. ok is false if the table does not have it.
func (d *directory) find(ctx context.Context, id string) (r storage.Replica, ok bool, err error) {
	d.mu.Lock()
	r, ok = d.known[id]
	d.mu.Unlock()
	if ok {
		return r, true, nil
	}
	return d.again(ctx, id)
}

// again reads the table again and returns a replica.
func (d *directory) again(ctx context.Context, id string) (r storage.Replica, ok bool, err error) {
	before := d.reads.Load()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.reads.Load() == before { // no other request has read it meanwhile
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

// load reads the table. The caller holds mu.
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

// all reads the table and returns its replicas.
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

// gone reports whether a replica has been silent for longer than goneAfter. Both times are from the
// store's clock.
func (d *directory) gone(r storage.Replica) bool { return d.now().Sub(r.SeenAt) > goneAfter }
