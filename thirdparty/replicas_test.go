package thirdparty

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/postgres"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
)

// flaky is a store that loses a save, or only its reply.
type flaky struct {
	storage.Store
	failing, deaf atomic.Int32  // number of affected saves
	after         chan struct{} // closed at the first failure
	once          sync.Once
	claimed       func(error) // called after each claim, unless nil
}

var errAway = errors.New("the database is away")

func (f *flaky) ClaimUpstream(ctx context.Context, id string, version int64, now, until time.Time) error {
	err := f.Store.ClaimUpstream(ctx, id, version, now, until)
	if f.claimed != nil {
		f.claimed(err)
	}
	return err
}

func (f *flaky) SaveUpstream(ctx context.Context, u storage.Upstream) error {
	if f.failing.Add(-1) >= 0 {
		f.once.Do(func() { close(f.after) })
		return errAway
	}
	err := f.Store.SaveUpstream(ctx, u)
	if f.deaf.Add(-1) >= 0 && err == nil {
		return errAway
	}
	return err
}

func newFlaky(s storage.Store) *flaky { return &flaky{Store: s, after: make(chan struct{})} }

// replicas returns delegations on one PostgreSQL database, each with separate connections.
func (r *rig) replicas(t *testing.T, n int) (out []*Delegation) {
	t.Helper()
	url := pgtest.Start(t).Database(t)
	for i := range n {
		store, err := postgres.Open(t.Context(), url, postgres.Options{MaxConns: 4})
		if err != nil {
			t.Fatal(err)
		}
		d := r.another(store, nil)
		out = append(out, d)
		if i == 0 {
			r.store = store
		}
		t.Cleanup(func() { d.Close(); store.Close() })
	}
	r.Delegation = out[0]
	return out
}

func TestReplicas(t *testing.T) {
	t.Run("AS-219: replicas that renew one rotating token ask once, and lose nothing", func(t *testing.T) {
		r := newRig(t, nil)
		all := r.replicas(t, 4)
		r.up.Behave(func(b *fakeidp.Behaviour) { b.AccessTTL = 2 * time.Minute })
		a, g := r.signIn("")
		const rounds = 8
		for round := range rounds {
			r.Advance(90 * time.Second)
			r.up.Forget()
			answer := make(chan struct{})
			r.up.Fail(fakeidp.Token, fakeidp.Fault{Held: answer})
			var group sync.WaitGroup
			for i := range 32 {
				group.Go(func() {
					d := all[i%len(all)]
					if i%8 == 7 {
						d.round(t.Context())
					} else if err := d.Check(t.Context(), a.Upstream, time.Second); err != nil {
						t.Error(err)
					}
				})
			}
			r.asked(fakeidp.Token)
			close(answer)
			group.Wait()
			if n := r.up.Calls(fakeidp.Token); n != 1 {
				t.Errorf("round %d: %d token requests, want 1", round, n)
			}
			if v := r.up.Violations(); len(v) > 0 {
				t.Fatalf("round %d: the upstream reproaches us: %q", round, v)
			}
		}
		if !r.active(g) {
			t.Error("the grant was lost")
		}
		// The stored refresh token is the one that the upstream accepts next.
		held, err := r.open(r.upstream(a.Upstream))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.byID["corp"].Refresh(t.Context(), held.Tokens); err != nil {
			t.Errorf("the stored refresh token: %v", err)
		}
	})
	t.Run("AS-219: many sessions, many replicas: each is renewed once", func(t *testing.T) {
		r := newRig(t, nil)
		all := r.replicas(t, 3)
		r.up.Behave(func(b *fakeidp.Behaviour) { b.AccessTTL = 2 * time.Minute })
		const sessions = 40
		for range sessions {
			r.signIn("")
		}
		r.Advance(110 * time.Second)
		r.up.Forget()
		var group sync.WaitGroup
		for _, d := range all {
			group.Go(func() {
				for d.round(t.Context()) > 0 {
				}
			})
		}
		group.Wait()
		if n := r.up.Calls(fakeidp.Token); n != sessions {
			t.Errorf("%d token requests, want %d", n, sessions)
		}
	})
	t.Run("AS-219: replicas find that it is over: one ends it, all know", func(t *testing.T) {
		r := newRig(t, nil)
		all := r.replicas(t, 4)
		a, g := r.signIn("")
		r.up.RevokeAll(fakeidp.Alice.Subject)
		r.Advance(6 * time.Minute)
		var group sync.WaitGroup
		for i := range 16 {
			group.Go(func() {
				if err := all[i%len(all)].Check(t.Context(), a.Upstream, 0); !errors.Is(err, storage.ErrRevoked) {
					t.Errorf("got %v", err)
				}
			})
		}
		group.Wait()
		if r.active(g) || r.Log.Events("provider.ended") != 1 {
			t.Errorf("%d events", r.Log.Events("provider.ended"))
		}
	})
}

// TestStoreFails: the upstream has answered, and the answer cannot be stored immediately.
func TestStoreFails(t *testing.T) {
	for _, tt := range []struct {
		name          string
		failing, deaf int32
	}{
		{"the store is away for a while", 4, 0},
		{"the store does it, and its replies are lost", 0, 2},
		{"both", 3, 1},
	} {
		t.Run("AS-219: "+tt.name+": the rotated token is kept, and not used before", func(t *testing.T) {
			r := newRig(t, nil)
			r.up.Behave(func(b *fakeidp.Behaviour) { b.AccessTTL = 2 * time.Minute })
			a, _ := r.signIn("")
			store := newFlaky(r.store)
			d := r.another(store, nil)
			for range 3 {
				r.Advance(90 * time.Second)
				r.up.Forget()
				store.failing.Store(tt.failing)
				store.deaf.Store(tt.deaf)
				if err := d.Check(t.Context(), a.Upstream, time.Second); err != nil {
					t.Fatal(err)
				}
				if n := r.up.Calls(fakeidp.Token); n != 1 {
					t.Errorf("%d token requests, want 1", n)
				}
			}
		})
	}
	t.Run("AS-219: another replica waits for it, and asks no provider", func(t *testing.T) {
		r := newRig(t, nil)
		r.up.Behave(func(b *fakeidp.Behaviour) { b.AccessTTL = 2 * time.Minute })
		a, _ := r.signIn("")
		store := newFlaky(r.store)
		first, second := r.another(store, nil), r.another(r.store, nil)
		r.Advance(90 * time.Second)
		r.up.Forget()
		store.failing.Store(5)
		done := make(chan error, 1)
		go func() { done <- first.Check(t.Context(), a.Upstream, time.Second) }()
		<-store.after // the upstream has answered
		if err := second.Check(t.Context(), a.Upstream, time.Second); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := r.up.Calls(fakeidp.Token); n != 1 {
			t.Errorf("%d token requests, want 1", n)
		}
	})
	t.Run("AS-223: who waited for another replica that got no answer does not ask as well", func(t *testing.T) {
		r := newRig(t, nil)
		a, _ := r.signIn("")
		store, once := newFlaky(r.store), sync.Once{}
		other := r.another(store, nil)
		r.Advance(6 * time.Minute)
		r.up.Forget()
		answer := make(chan struct{})
		r.up.Fail(fakeidp.UserInfo, fakeidp.Fault{Held: answer, Status: 503, Body: "{}"})
		done := make(chan error, 1)
		go func() { done <- r.Check(t.Context(), a.Upstream, 0) }()
		r.asked(fakeidp.UserInfo)
		store.claimed = func(error) { once.Do(func() { close(answer) }) }
		if err := other.Check(t.Context(), a.Upstream, 0); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := r.up.Calls(fakeidp.UserInfo); n != 1 {
			t.Errorf("asked %d times, want 1", n)
		}
	})
	t.Run("AS-219: the session ended here meanwhile: the new tokens are given back", func(t *testing.T) {
		r := newRig(t, nil)
		r.up.Behave(func(b *fakeidp.Behaviour) { b.AccessTTL = 2 * time.Minute })
		a, _ := r.signIn("")
		r.Advance(90 * time.Second)
		store := newFlaky(r.store)
		store.failing.Store(1)
		d := r.another(store, nil)
		done := make(chan error, 1)
		go func() { done <- d.Check(t.Context(), a.Upstream, time.Second) }()
		<-store.after
		if _, err := r.store.EndUpstreams(t.Context(), storage.UpstreamKey{ID: a.Upstream}, reasonDisabled,
			r.Now()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; !errors.Is(err, storage.ErrRevoked) {
			t.Errorf("got %v", err)
		}
		d.Close()
		if left := r.up.Sessions(fakeidp.Alice.Subject); len(left) != 0 {
			t.Errorf("%v live on at the provider", left)
		}
	})
}

func TestListenHoldsTheClaim(t *testing.T) {
	r := newRig(t, nil)
	r.up.Behave(func(b *fakeidp.Behaviour) { b.AccessTTL, b.NoIDTokenAtRefresh = 2*time.Minute, true })
	a, _ := r.signIn("")
	r.Advance(90 * time.Second)
	r.up.Forget()
	answer := make(chan struct{})
	r.up.Fail(fakeidp.UserInfo, fakeidp.Fault{Held: answer})
	done := make(chan error, 1)
	go func() { done <- r.Check(t.Context(), a.Upstream, time.Second) }()
	r.asked(fakeidp.UserInfo)
	u, now := r.upstream(a.Upstream), r.Now()
	if err := r.store.ClaimUpstream(t.Context(), u.ID, u.Version, now, now.Add(time.Second)); !errors.Is(err,
		storage.ErrSpent) {
		t.Errorf("AS-219: another replica may renew while an answer is about to be stored: %v", err)
	}
	close(answer)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestLostReply(t *testing.T) {
	r := newRig(t, nil)
	a, _ := r.signIn("")
	store := newFlaky(r.store)
	store.deaf.Store(1)
	d := r.another(store, nil)
	u := r.upstream(a.Upstream)
	if err := d.save(t.Context(), u); err != nil {
		t.Errorf("AS-219: our own answer is taken for another replica's: %v", err)
	}
	u.Sealed = []byte("another answer")
	if err := d.save(t.Context(), u); !errors.Is(err, errHeld) {
		t.Errorf("AS-219: with an old version: got %v, want %v", err, errHeld)
	}
}

// TestReplicaDies: a claim whose holder has died is taken over after it expires.
func TestReplicaDies(t *testing.T) {
	r := newRig(t, nil)
	a, _ := r.signIn("")
	r.Advance(10 * time.Minute)
	u, now := r.upstream(a.Upstream), r.Now()
	if err := r.store.ClaimUpstream(t.Context(), u.ID, u.Version, now, now.Add(claimTTL)); err != nil {
		t.Fatal(err)
	}
	r.up.Forget()
	store := newFlaky(r.store)
	store.claimed = func(err error) { // the store's clock advances while a caller waits
		if errors.Is(err, storage.ErrSpent) {
			r.Advance(claimTTL)
		}
	}
	if err := r.another(store, nil).Check(t.Context(), a.Upstream, 0); err != nil {
		t.Error(err)
	}
	if n := r.up.Calls(fakeidp.UserInfo); n != 1 {
		t.Errorf("AS-218: asked %d times, want 1", n)
	}
}
