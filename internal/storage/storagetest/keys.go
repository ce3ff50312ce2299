package storagetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

func signingKey(e *env, id string) storage.SigningKey {
	return storage.SigningKey{ID: id, Algorithm: "ES256", State: storage.KeyActive,
		Public: []byte(`{"kid":"` + id + `"}`), Private: []byte("sealed"), CreatedAt: e.now, ActivatedAt: e.now}
}

func nextKey(e *env, id string) storage.SigningKey {
	k := signingKey(e, id)
	k.State, k.ActivatedAt = storage.KeyNext, time.Time{}
	return k
}

func keys(t *testing.T, e *env) {
	first, second := signingKey(e, "k1"), signingKey(e, "k2")
	second.CreatedAt, second.ActivatedAt = e.now.Add(time.Hour), e.now.Add(time.Hour)
	until := e.now.Add(2 * time.Hour)

	t.Run("only the first key of an algorithm is stored", func(t *testing.T) {
		for i, want := range []bool{true, false} {
			stored, err := e.s.PutFirstKey(e.ctx, signingKey(e, []string{"k1", "k1b"}[i]))
			check(t, err)
			if stored != want {
				t.Errorf("try %d: stored %v, want %v", i, stored, want)
			}
		}
		other := signingKey(e, "ed1")
		other.Algorithm = "EdDSA"
		stored, err := e.s.PutFirstKey(e.ctx, other)
		check(t, err)
		if !stored {
			t.Error("the first key of another algorithm was not stored")
		}
		got, err := e.s.Keys(e.ctx, e.now)
		check(t, err)
		same(t, got, []storage.SigningKey{other, first})
	})
	t.Run("a rotation retires the active key and keeps it until it expires", func(t *testing.T) {
		check(t, e.s.RotateKey(e.ctx, "k1", second, second.CreatedAt, until))
		retired := first
		retired.State, retired.RetiredAt, retired.ExpiresAt = storage.KeyRetired, second.CreatedAt, until
		got, err := e.s.Keys(e.ctx, until.Add(-time.Millisecond))
		check(t, err)
		same(t, got[1:], []storage.SigningKey{retired, second})
		got, err = e.s.Keys(e.ctx, until)
		check(t, err)
		same(t, got[1:], []storage.SigningKey{second})
	})
	t.Run("who is late finds the key no longer active, and changes nothing", func(t *testing.T) {
		wantErr(t, e.s.RotateKey(e.ctx, "k1", signingKey(e, "k3"), e.now, until), storage.ErrSpent)
		wantErr(t, e.s.RotateKey(e.ctx, "none", signingKey(e, "k3"), e.now, until), storage.ErrSpent)
		wantErr(t, e.s.RotateKey(e.ctx, "ed1", signingKey(e, "k3"), e.now, until), storage.ErrSpent)
		wantErr(t, e.s.RotateKey(e.ctx, "k2", signingKey(e, "k1"), e.now, until), storage.ErrExists)
		got, err := e.s.Keys(e.ctx, until)
		check(t, err)
		same(t, got[1:], []storage.SigningKey{second})
	})
}

// states returns the stored keys at a time, with their states.
func states(t *testing.T, e *env, at time.Time) (out []string) {
	t.Helper()
	all, err := e.s.Keys(e.ctx, at)
	check(t, err)
	for _, k := range all {
		out = append(out, k.ID+" "+string(k.State))
	}
	slices.Sort(out)
	return out
}

func putFirst(t *testing.T, e *env, k storage.SigningKey) {
	t.Helper()
	stored, err := e.s.PutFirstKey(e.ctx, k)
	check(t, err)
	if !stored {
		t.Fatalf("%s was not stored", k.ID)
	}
}

func putNext(t *testing.T, e *env, active string, k storage.SigningKey, want bool) {
	t.Helper()
	stored, err := e.s.PutNextKey(e.ctx, active, k)
	check(t, err)
	if stored != want {
		t.Errorf("%s after %s: stored %v, want %v", k.ID, active, stored, want)
	}
}

func keyLife(t *testing.T, e *env) {
	until, later := e.now.Add(2*time.Hour), e.now.Add(time.Hour)
	putFirst(t, e, signingKey(e, "k1"))
	t.Run("AS-121 one next key is published, after the active one only", func(t *testing.T) {
		putNext(t, e, "none", nextKey(e, "k2"), false)
		putNext(t, e, "k1", nextKey(e, "k2"), true)
		putNext(t, e, "k1", nextKey(e, "k3"), false)
		same(t, states(t, e, e.now), []string{"k1 active", "k2 next"})
	})
	t.Run("AS-121 it becomes active, and the active one retires", func(t *testing.T) {
		wantErr(t, e.s.PromoteKey(e.ctx, "k1", "k3", later, until), storage.ErrSpent)
		wantErr(t, e.s.PromoteKey(e.ctx, "k2", "k2", later, until), storage.ErrSpent)
		same(t, states(t, e, e.now), []string{"k1 active", "k2 next"})
		check(t, e.s.PromoteKey(e.ctx, "k1", "k2", later, until))
		first, second := signingKey(e, "k1"), signingKey(e, "k2")
		first.State, first.RetiredAt, first.ExpiresAt = storage.KeyRetired, later, until
		second.ActivatedAt = later
		got, err := e.s.Keys(e.ctx, e.now)
		check(t, err)
		same(t, got, []storage.SigningKey{first, second})
		wantErr(t, e.s.PromoteKey(e.ctx, "k1", "k2", later, until), storage.ErrSpent)
		putNext(t, e, "k1", nextKey(e, "k3"), false)
	})
	t.Run("a key that is needed no longer retires, the only active one never", func(t *testing.T) {
		putNext(t, e, "k2", nextKey(e, "k3"), true)
		for _, id := range []string{"k2", "k1", "none"} {
			wantErr(t, e.s.RetireKey(e.ctx, id, later, until), storage.ErrSpent)
		}
		other := signingKey(e, "ed1")
		other.Algorithm = "EdDSA"
		putFirst(t, e, other)
		check(t, e.s.RetireKey(e.ctx, "k2", later, until))
		check(t, e.s.RetireKey(e.ctx, "k3", later, until))
		wantErr(t, e.s.RetireKey(e.ctx, "ed1", later, until), storage.ErrSpent)
		same(t, states(t, e, e.now), []string{"ed1 active", "k1 retired", "k2 retired", "k3 retired"})
		same(t, states(t, e, until), []string{"ed1 active"})
	})
}

func keyCustody(t *testing.T, e *env) {
	until := e.now.Add(time.Hour)
	putFirst(t, e, signingKey(e, "k1"))
	putNext(t, e, "k1", nextKey(e, "k2"), true)
	t.Run("a key in any state is gone at once when it is revoked, but for the only active one", func(t *testing.T) {
		wantErr(t, e.s.RevokeKey(e.ctx, "none"), storage.ErrNotFound)
		wantErr(t, e.s.RevokeKey(e.ctx, "k1"), storage.ErrSpent)
		check(t, e.s.RevokeKey(e.ctx, "k2"))
		check(t, e.s.RotateKey(e.ctx, "k1", signingKey(e, "k3"), e.now, until))
		check(t, e.s.RevokeKey(e.ctx, "k1"))
		wantErr(t, e.s.RevokeKey(e.ctx, "k1"), storage.ErrNotFound)
		same(t, states(t, e, e.now), []string{"k3 active"})
	})
	t.Run("a replica that still knows a revoked next key cannot promote it", func(t *testing.T) {
		wantErr(t, e.s.PromoteKey(e.ctx, "k3", "k2", e.now, until), storage.ErrSpent)
		same(t, states(t, e, e.now), []string{"k3 active"})
	})
	t.Run("a key is sealed again by a caller who saw its present form", func(t *testing.T) {
		wantErr(t, e.s.ResealKey(e.ctx, "k3", []byte("other"), []byte("new")), storage.ErrSpent)
		wantErr(t, e.s.ResealKey(e.ctx, "none", []byte("sealed"), []byte("new")), storage.ErrSpent)
		check(t, e.s.ResealKey(e.ctx, "k3", []byte("sealed"), []byte("new")))
		got, err := e.s.Keys(e.ctx, e.now)
		check(t, err)
		same(t, string(got[0].Private), "new")
	})
	t.Run("the fingerprint moves from the one that is stored", func(t *testing.T) {
		wantErr(t, e.s.MoveFingerprint(e.ctx, []byte("one"), []byte("two")), storage.ErrSpent)
		_, err := e.s.Fingerprint(e.ctx, []byte("one"))
		check(t, err)
		wantErr(t, e.s.MoveFingerprint(e.ctx, []byte("two"), []byte("three")), storage.ErrSpent)
		check(t, e.s.MoveFingerprint(e.ctx, []byte("one"), []byte("two")))
		got, err := e.s.Fingerprint(e.ctx, []byte("one"))
		check(t, err)
		same(t, string(got), "two")
	})
}

func raceFirstKey(t *testing.T, e *env) {
	var c tally
	compete(func(i int) {
		stored, err := e.s.PutFirstKey(e.ctx, signingKey(e, fmt.Sprint("k", i)))
		if err == nil && !stored {
			err = storage.ErrExists
		}
		c.add(err, storage.ErrExists)
	})
	c.want(t, 1)
	wantKeys(t, e, 1)
}

func raceNextKey(t *testing.T, e *env) {
	putFirst(t, e, signingKey(e, "first"))
	var c tally
	compete(func(i int) {
		stored, err := e.s.PutNextKey(e.ctx, "first", nextKey(e, fmt.Sprint("k", i)))
		if err == nil && !stored {
			err = storage.ErrExists
		}
		c.add(err, storage.ErrExists)
	})
	c.want(t, 1)
	wantKeys(t, e, 2)
}

// racePromoteKey lets half of the replicas promote a key. The other half comes late, still sees the
// old key active, and publishes another. Only one rotation may happen.
func racePromoteKey(t *testing.T, e *env) {
	putFirst(t, e, signingKey(e, "first"))
	putNext(t, e, "first", nextKey(e, "second"), true)
	var c tally
	compete(func(i int) {
		if i%2 == 0 {
			c.add(e.s.PromoteKey(e.ctx, "first", "second", e.now, e.now.Add(time.Hour)), storage.ErrSpent)
			return
		}
		if stored, err := e.s.PutNextKey(e.ctx, "first", nextKey(e, fmt.Sprint("k", i))); err != nil || stored {
			t.Errorf("a late replica: stored %v, %v", stored, err)
		}
	})
	c.want(t, 1)
	wantKeys(t, e, 2)
}

func raceRotateKey(t *testing.T, e *env) {
	putFirst(t, e, signingKey(e, "first"))
	var c tally
	compete(func(i int) {
		c.add(e.s.RotateKey(e.ctx, "first", signingKey(e, fmt.Sprint("k", i)), e.now, e.now.Add(time.Hour)),
			storage.ErrSpent)
	})
	c.want(t, 1)
	wantKeys(t, e, 2)
}

// raceRevokeKey revokes the next key while it is promoted. In either order, one key is active
// afterwards.
func raceRevokeKey(t *testing.T, e *env) {
	putFirst(t, e, signingKey(e, "first"))
	putNext(t, e, "first", nextKey(e, "second"), true)
	compete(func(i int) {
		var c tally
		switch i % 3 {
		case 0:
			c.add(e.s.PromoteKey(e.ctx, "first", "second", e.now, e.now.Add(time.Hour)), storage.ErrSpent)
		case 1:
			c.add(e.s.RevokeKey(e.ctx, "second"), storage.ErrSpent, storage.ErrNotFound)
		case 2:
			c.add(e.s.RetireKey(e.ctx, "first", e.now, e.now.Add(time.Hour)), storage.ErrSpent)
		}
		for _, err := range c.odd {
			t.Error(err)
		}
	})
	active := 0
	for _, k := range states(t, e, e.now) {
		if k == "first active" || k == "second active" {
			active++
		}
	}
	if active != 1 {
		t.Errorf("got %v, want one active", states(t, e, e.now))
	}
}

func raceReseal(t *testing.T, e *env) {
	putFirst(t, e, signingKey(e, "first"))
	var c tally
	compete(func(i int) {
		c.add(e.s.ResealKey(e.ctx, "first", []byte("sealed"), []byte(fmt.Sprint("sealed by ", i))), storage.ErrSpent)
	})
	c.want(t, 1)
}

func wantKeys(t *testing.T, e *env, want int) {
	t.Helper()
	all, err := e.s.Keys(e.ctx, e.now)
	check(t, err)
	active := 0
	for _, k := range all {
		if k.State == storage.KeyActive {
			active++
		}
	}
	if len(all) != want || active != 1 {
		t.Errorf("got %d keys, %d active; want %d, 1", len(all), active, want)
	}
}
