package storagetest

import (
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// keyedRequest returns a new request of a caller.
func (e *env) keyedRequest(caller storage.Hash) storage.KeyedRequest {
	return storage.KeyedRequest{
		Key: randomHash(), Caller: caller, Digest: []byte{0, 1, 254, 255}, Until: e.now.Add(time.Minute),
		ExpiresAt: e.now.Add(time.Hour),
	}
}

func (e *env) beginKeyed(t testing.TB, r storage.KeyedRequest, at time.Time, begins bool) storage.KeyedRequest {
	t.Helper()
	got, begun, err := e.s.BeginKeyed(e.ctx, r, 3, at)
	check(t, err)
	if begun != begins {
		t.Errorf("it has begun: got %v, want %v", begun, begins)
	}
	return got
}

func keyedRequests(t *testing.T, e *env) {
	t.Run("OB-10 a request begins once, and what came first stays with its answer", func(t *testing.T) {
		r := e.keyedRequest(randomHash())
		same(t, e.beginKeyed(t, r, e.now, true), r)
		other := r
		other.Caller, other.Digest, other.Until = randomHash(), []byte{2}, e.now
		same(t, e.beginKeyed(t, other, e.now, false), r)
		r.Sealed = []byte{3, 0, 255}
		check(t, e.s.EndKeyed(e.ctx, r.Key, r.Sealed))
		wantErr(t, e.s.EndKeyed(e.ctx, r.Key, []byte{4}), storage.ErrSpent)
		same(t, e.beginKeyed(t, other, r.ExpiresAt.Add(-time.Millisecond), false), r)
		check(t, e.s.ForgetKeyed(e.ctx, r.Key))
		same(t, e.beginKeyed(t, other, e.now, false), r)
	})
	t.Run("OB-10 a key that has expired is a new one, without an answer", func(t *testing.T) {
		r := e.keyedRequest(randomHash())
		e.beginKeyed(t, r, e.now, true)
		check(t, e.s.EndKeyed(e.ctx, r.Key, []byte{3}))
		later := r
		later.Caller, later.Digest, later.ExpiresAt = randomHash(), []byte{2}, r.ExpiresAt.Add(time.Hour)
		same(t, e.beginKeyed(t, later, r.ExpiresAt, true), later)
	})
	t.Run("OB-10 a request that is forgotten begins again", func(t *testing.T) {
		r := e.keyedRequest(randomHash())
		e.beginKeyed(t, r, e.now, true)
		check(t, e.s.ForgetKeyed(e.ctx, r.Key))
		check(t, e.s.ForgetKeyed(e.ctx, r.Key))
		wantErr(t, e.s.EndKeyed(e.ctx, r.Key, []byte{3}), storage.ErrNotFound)
		e.beginKeyed(t, r, e.now, true)
	})
	t.Run("OB-10 a request is swept when it has expired", func(t *testing.T) {
		r := e.keyedRequest(randomHash())
		e.beginKeyed(t, r, e.now, true)
		for _, at := range []time.Time{r.ExpiresAt.Add(-time.Millisecond), r.ExpiresAt} {
			_, err := e.s.Sweep(e.ctx, storage.Retention{Now: at}, 100)
			check(t, err)
			e.beginKeyed(t, r, e.now, !at.Before(r.ExpiresAt))
		}
	})
	t.Run("OB-10 a caller has so many keys, and the others as many", func(t *testing.T) {
		caller := randomHash()
		for range 3 {
			e.beginKeyed(t, e.keyedRequest(caller), e.now, true)
		}
		last := e.keyedRequest(caller)
		_, begun, err := e.s.BeginKeyed(e.ctx, last, 3, e.now)
		wantErr(t, err, storage.ErrFull)
		if begun {
			t.Error("one too many has begun")
		}
		e.beginKeyed(t, e.keyedRequest(randomHash()), e.now, true)
		last.ExpiresAt = last.ExpiresAt.Add(time.Hour)
		e.beginKeyed(t, last, e.now.Add(time.Hour), true)
	})
}

// raceBeginKeyed: one of several concurrent requests with one key begins, and the others find it.
func raceBeginKeyed(t *testing.T, e *env) {
	r := e.keyedRequest(randomHash())
	var c tally
	compete(func(i int) {
		mine := r
		mine.Digest = []byte{byte(i)}
		got, begun, err := e.s.BeginKeyed(e.ctx, mine, 3, e.now)
		switch {
		case err == nil && begun && got.Digest[0] != byte(i):
			t.Errorf("request %d has begun, and %d is stored", i, got.Digest[0])
		case err == nil && !begun:
			err = storage.ErrSpent
		}
		c.add(err, storage.ErrSpent)
	})
	c.want(t, 1)
}
