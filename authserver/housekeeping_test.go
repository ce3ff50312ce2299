package authserver

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// sweptStore counts the calls of the housekeeping. Its sweeps last for hold.
type sweptStore struct {
	storage.Store
	sweeps, keys atomic.Int64
	now, most    atomic.Int64 // concurrent sweeps
	hold         time.Duration
	left         int64 // number of full sweeps
}

func (s *sweptStore) Sweep(ctx context.Context, r storage.Retention, limit int) (int, error) {
	n := s.now.Add(1)
	s.most.Store(max(s.most.Load(), n))
	s.sweeps.Add(1)
	select {
	case <-ctx.Done():
	case <-time.After(s.hold):
	}
	s.now.Add(-1)
	if s.sweeps.Load() <= s.left {
		return limit, nil
	}
	return s.Store.Sweep(ctx, r, limit)
}

func (s *sweptStore) Keys(ctx context.Context, now time.Time) ([]storage.SigningKey, error) {
	s.keys.Add(1)
	return s.Store.Keys(ctx, now)
}

// replicas runs the housekeeping of several servers on one store in a bubble.
func replicas(t *testing.T, n int, hold time.Duration, left int64, look func(*sweptStore)) {
	synctest.Test(t, func(t *testing.T) {
		db := installation.Store(t)
		store := &sweptStore{Store: db, hold: hold, left: left}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for range n {
			s, err := Assemble(ctx,
				Config{Issuer: "https://as.example", Store: store, SecretKeys: [][]byte{bytes.Repeat([]byte{7}, 32)}})
			if err != nil {
				t.Fatal(err)
			}
			running.Go(func() { s.Run(ctx) })
		}
		look(store)
		cancel()
		running.Wait()
	})
}

// Operations H2: a long sweep does not delay keys.
func TestKeysAreTendedDuringASweep(t *testing.T) {
	replicas(t, 1, time.Hour, 0, func(s *sweptStore) {
		wait.Advance(2 * time.Minute)
		before := s.keys.Load()
		wait.Advance(10 * time.Minute)
		if got := s.keys.Load() - before; s.sweeps.Load() != 1 || got < 100 {
			t.Errorf("AS-121 in ten minutes of a sweep the keys were looked at %d times, want some 120", got)
		}
	})
}

// Operations H2: one of several replicas sweeps, without long pauses while there is much to do, and
// another one takes over when it is gone.
func TestOneReplicaSweeps(t *testing.T) {
	replicas(t, 3, 50*time.Millisecond, 1000, func(s *sweptStore) {
		wait.Advance(3 * time.Minute)
		if got := s.sweeps.Load(); got < 1000 || s.most.Load() != 1 {
			t.Errorf("got %d sweeps, %d at once; want 1000 and some, one at a time", got, s.most.Load())
		}
		before := s.sweeps.Load()
		wait.Advance(10 * time.Minute)
		if got := s.sweeps.Load() - before; got < 9 || got > 11 {
			t.Errorf("got %d sweeps in ten minutes, want one each minute", got)
		}
	})
}

func TestAnotherReplicaSweeps(t *testing.T) {
	replicas(t, 1, 0, 0, func(s *sweptStore) {
		for minute := range 5 { // one replica that is gone after two minutes
			if minute < 2 {
				_, err := s.Lease(context.Background(), "sweep", "gone", time.Now(), time.Now().Add(sweepLease))
				if err != nil {
					t.Fatal(err)
				}
			}
			wait.Advance(time.Minute)
			if got := s.sweeps.Load(); minute < 2 && got != 0 {
				t.Errorf("swept in minute %d, when another replica did", minute)
			}
		}
		if got := s.sweeps.Load(); got < 2 {
			t.Errorf("got %d sweeps after the other one has gone", got)
		}
	})
}

// Operations H3: one of the servers completes a command's bulk revocation within a second, and logs
// it once with its number.
func TestServersFollowCuts(t *testing.T) {
	r := newRig(t)
	p := r.person()
	first := r.verified(t, p.signIn()["access_token"].(string))
	if _, err := r.store.CutGrants(t.Context(), storage.Selection{ClientID: first.ClientID}, storage.ByOperator,
		r.now()); err != nil {
		t.Fatal(err)
	}
	if bit, _, _ := p.listed(t, first.Status); bit != 1 {
		t.Error("OP-04: the list lacks revoked grants that are not marked yet")
	}
	r.advance(time.Second)
	r.followCuts(t.Context())
	r.followCuts(t.Context())
	if bit, _, _ := p.listed(t, first.Status); bit != 1 {
		t.Error("AS-226 a cut that a server has followed is not in the list")
	}
	if n := strings.Count(r.log.String(), `"event":"grants.revoked"`); n != 1 ||
		!strings.Contains(r.log.String(), `"grants":1,`) {
		t.Errorf("told %d times: %s", n, r.log.String())
	}
}
