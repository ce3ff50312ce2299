package storagetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// serving returns a replica seen at a time.
func (e *env) serving(id string, seen time.Time) storage.Replica {
	return storage.Replica{
		ID:           id,
		Name:         "web-1",
		Version:      "1.2.3",
		Migration:    48,
		Issuer:       "https://auth.example",
		Address:      "127.0.0.1:8414",
		StartedAt:    e.now.Add(-time.Hour),
		SeenAt:       seen,
		Skew:         -1500 * time.Millisecond,
		AuditWaiting: 3,
		AuditLost:    1 << 40,
		PeerAddress:  "127.0.0.1:40123",
		Unreached:    "rep_x connection refused",
	}
}

// seen returns the replicas that the store knows at a time.
func (e *env) seen(t *testing.T, now time.Time) []storage.Replica {
	t.Helper()
	got, _, err := e.s.Replicas(e.ctx, now)
	check(t, err)
	return got
}

// replicas checks OB-10: the records that servers of one store have of each other.
func replicas(t *testing.T, e *env) {
	same(t, len(e.seen(t, e.now)), 0)
	a, b := e.serving("rep_a", e.now), e.serving("rep_b", e.now.Add(time.Second))
	b.Skew = 0
	check(t, e.s.SeeReplica(e.ctx, a))
	check(t, e.s.SeeReplica(e.ctx, b))
	t.Run("OB-10 they are listed as they told of themselves, the last seen first", func(t *testing.T) {
		got := e.seen(t, e.now)
		same(t, len(got), 2)
		same(t, got[0], b)
		same(t, got[1], a)
	})
	t.Run("OB-10 the step of the schema is that of the database", func(t *testing.T) {
		_, schema, err := e.s.Replicas(e.ctx, e.now)
		check(t, err)
		if schema < 48 {
			t.Errorf("got step %d", schema)
		}
	})
	t.Run("RU-08 where a replica takes requests, and whom it cannot reach, can change", func(t *testing.T) {
		b.PeerAddress, b.Unreached = "", ""
		check(t, e.s.SeeReplica(e.ctx, b))
		same(t, e.seen(t, e.now)[0], b)
	})
	t.Run("OB-10 what is told later counts, and what comes late does not", func(t *testing.T) {
		late := a
		a.SeenAt, a.Version, a.Migration, a.AuditWaiting = e.now.Add(time.Minute), "1.2.4", 49, 0
		check(t, e.s.SeeReplica(e.ctx, a))
		check(t, e.s.SeeReplica(e.ctx, late))
		same(t, e.seen(t, e.now)[0], a)
	})
	t.Run("OB-10 one that ends is forgotten, more than once", func(t *testing.T) {
		check(t, e.s.ForgetReplica(e.ctx, b.ID))
		check(t, e.s.ForgetReplica(e.ctx, b.ID))
		got := e.seen(t, e.now)
		same(t, len(got), 1)
		same(t, got[0], a)
	})
	t.Run("OB-10 one that was not seen for a day is not listed, and swept", func(t *testing.T) {
		gone := a.SeenAt.Add(storage.ReplicaFor)
		same(t, len(e.seen(t, gone.Add(-time.Millisecond))), 1)
		same(t, len(e.seen(t, gone)), 0)
		_, err := e.s.Sweep(e.ctx, storage.Retention{Now: gone.Add(-time.Millisecond)}, 1000)
		check(t, err)
		same(t, len(e.seen(t, e.now)), 1)
		_, err = e.s.Sweep(e.ctx, storage.Retention{Now: gone}, 1000)
		check(t, err)
		same(t, len(e.seen(t, e.now)), 0)
	})
	t.Run("OB-10 of too many those go that were not seen for longest", func(t *testing.T) {
		for i := range storage.MaxReplicas + 2 {
			seen := e.now.Add(time.Duration(i) * time.Second)
			check(t, e.s.SeeReplica(e.ctx, e.serving(fmt.Sprintf("rep_%03d", i), seen)))
		}
		same(t, len(e.seen(t, e.now)), storage.MaxReplicas)
		_, err := e.s.Sweep(e.ctx, storage.Retention{Now: e.now}, 1000)
		check(t, err)
		for _, id := range []string{"rep_257", "rep_256", "rep_255"} { // a hidden replica would be listed now
			check(t, e.s.ForgetReplica(e.ctx, id))
		}
		got := e.seen(t, e.now)
		same(t, len(got), storage.MaxReplicas-3)
		same(t, got[len(got)-1].ID, "rep_002")
	})
}

// raceSeeReplica: of 32 reports of one replica, the last by its time stays.
func raceSeeReplica(t *testing.T, e *env) {
	compete(func(i int) {
		check(t, e.s.SeeReplica(e.ctx, e.serving("rep_race", e.now.Add(time.Duration(i)*time.Second))))
	})
	got := e.seen(t, e.now)
	same(t, len(got), 1)
	same(t, got[0].SeenAt, e.now.Add(31*time.Second))
}
