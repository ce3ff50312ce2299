package thirdparty

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
	await "github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/thirdparty/internal/provider"
)

func TestRun(t *testing.T) {
	t.Run("AS-218 AS-219: a session that the provider has ended ends here without a request", func(t *testing.T) {
		r := newRig(t, nil)
		_, alice := r.signIn("")
		_, bob := r.signIn(fakeidp.Bob.Email)
		r.up.RevokeAll(fakeidp.Alice.Subject)
		r.Advance(5 * time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		await.Until(t, "the session has ended", func() bool { return !r.active(alice) })
		cancel()
		if err := <-done; err != nil || !r.active(bob) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("AS-218: a session is not checked before it is due, and then once", func(t *testing.T) {
		r := newRig(t, nil)
		r.signIn("")
		r.up.Forget()
		r.Advance(4 * time.Minute)
		r.round(t.Context())
		if n := r.up.Calls(fakeidp.UserInfo); n != 0 {
			t.Errorf("asked %d times", n)
		}
		r.Advance(time.Minute)
		for range 3 {
			r.round(t.Context())
		}
		if n := r.up.Calls(fakeidp.UserInfo); n != 1 {
			t.Errorf("asked %d times, want 1", n)
		}
	})
	t.Run("AS-223: sessions of a provider that is down, or was taken out, do not hold up the others",
		func(t *testing.T) {
			other := fakeidp.Start(t)
			edit := func(c *Config) {
				second := c.Connectors[0]
				second.ID, second.Issuer, second.ClientID, second.ClientSecret = "other", other.URL, other.ClientID,
					other.ClientSecret
				c.Connectors = append(c.Connectors, second)
			}
			r := newRig(t, edit)
			other.Behave(func(b *fakeidp.Behaviour) { b.Now = r.Now })
			for range 3 * batch {
				r.signIn("")
			}
			left, err := r.Depart(t.Context(), withProvider("other"))
			if err != nil {
				t.Fatal(err)
			}
			back, err := other.Visit(left.URL)
			if err != nil {
				t.Fatal(err)
			}
			a, err := r.come(browser{left, back.Query()}, "other")
			if err != nil {
				t.Fatal(err)
			}
			r.up.FailAll(fakeidp.Down)
			r.up.Forget()
			other.RevokeAll(fakeidp.Alice.Subject)
			r.Advance(5 * time.Minute)
			for r.round(t.Context()) == batch {
			}
			if r.upstream(a.Upstream).EndedAt.IsZero() {
				t.Error("it was not looked at")
			}
			if n := r.up.Calls(fakeidp.UserInfo); n > 2*(tolerated+workers) {
				t.Errorf("a provider that is down was asked %d times", n)
			}
			alone := r.another(r.store, func(c *Config) { edit(c); c.Connectors = c.Connectors[1:] })
			r.Advance(10 * time.Minute)
			for range 5 {
				alone.round(t.Context())
			}
			if due, err := r.store.DueUpstreams(t.Context(), r.Now(), 1); err != nil || len(due) != 0 {
				t.Errorf("%d stay due, %v", len(due), err)
			}
			if n := r.rows("farewells"); n != 1 { // for the ended session
				t.Errorf("%d browser sessions ended, want 1", n)
			}
		})
}

// sulky is a store that always has a batch of due sessions and refuses every claim.
type sulky struct {
	storage.Store
	claims atomic.Int32
	rounds atomic.Int32
	second func() // called when a second round begins
}

func (s *sulky) DueUpstreams(ctx context.Context, _ time.Time, limit int) (due []storage.Upstream, err error) {
	if s.rounds.Add(1) == 2 {
		s.second()
		return nil, ctx.Err()
	}
	for i := range limit {
		due = append(due, storage.Upstream{ID: fmt.Sprint(i), Connector: "corp"})
	}
	return due, nil
}

func (s *sulky) ClaimUpstream(context.Context, string, int64, time.Time, time.Time) error {
	s.claims.Add(1)
	return errAway
}

func TestRunIsPatient(t *testing.T) {
	r := newRig(t, nil)
	synctest.Test(t, func(t *testing.T) {
		empty := installation.Store(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		store := &sulky{Store: empty, second: cancel}
		began := time.Now()
		if err := r.another(store, nil).Run(ctx); err != nil {
			t.Error(err)
		}
		if n := store.claims.Load(); n != batch {
			t.Errorf("AS-223: a store in trouble was asked %d times at once, want %d", n, batch)
		}
		if took := time.Since(began); took != rounds {
			t.Errorf("AS-223: a store in trouble is asked again after %s, want %s", took, rounds)
		}
	})
}

func TestReseal(t *testing.T) {
	newer := bytes.Repeat([]byte{9}, secrets.KeySize)
	both := func(c *Config) { c.SecretKeys = [][]byte{newer, masterKey} }
	only := func(c *Config) { c.SecretKeys = [][]byte{newer} }
	t.Run("AS-223: another master key takes over in place, and tokens stay what they are", func(t *testing.T) {
		r := newRig(t, nil)
		var ids []string
		const n = 2*batch + 1
		for range n {
			a, _ := r.signIn("")
			ids = append(ids, a.Upstream)
		}
		before := r.upstream(ids[0])
		d := r.another(r.store, both)
		if got, err := d.Reseal(t.Context()); err != nil || got != n {
			t.Errorf("got %d, %v, want %d", got, err, n)
		}
		if got, err := d.Reseal(t.Context()); err != nil || got != 0 {
			t.Errorf("again: got %d, %v", got, err)
		}
		if after := r.upstream(ids[0]); after.Version != before.Version || bytes.Equal(after.Sealed, before.Sealed) {
			t.Errorf("version %d, was %d", after.Version, before.Version)
		}
		alone := r.another(r.store, only)
		r.Advance(6 * time.Minute)
		for _, id := range ids {
			if err := alone.Check(t.Context(), id, 0); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("AS-223: without the old key it says which session cannot be opened", func(t *testing.T) {
		r := newRig(t, nil)
		r.signIn("")
		if n, err := r.another(r.store, only).Reseal(t.Context()); err == nil || n != 0 {
			t.Errorf("got %d, %v", n, err)
		}
	})
	t.Run("AS-223: what was read before is not stored over it in the old form", func(t *testing.T) {
		r := newRig(t, nil)
		a, _ := r.signIn("")
		d := r.another(r.store, both)
		stale := r.upstream(a.Upstream)
		if _, err := d.Reseal(t.Context()); err != nil {
			t.Fatal(err)
		}
		_ = d.postpone(t.Context(), d.byID["corp"], stale, provider.ErrUnreachable)
		if _, err := r.another(r.store, only).open(r.upstream(a.Upstream)); err != nil {
			t.Error(err)
		}
	})
}

func withProvider(id string) delegation.Request {
	t := signIn
	t.Provider = id
	return t
}
