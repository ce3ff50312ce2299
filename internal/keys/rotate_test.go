package keys

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tend executes the step that is due and returns the states of the keys, sorted.
func tend(t *testing.T, m *Manager) string {
	t.Helper()
	must(t, m.Tend(t.Context()))
	return states(t, m)
}

func states(t *testing.T, m *Manager) string {
	t.Helper()
	all, err := m.List(t.Context())
	must(t, err)
	var out []string
	for _, k := range all {
		out = append(out, string(k.State))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func kids(t *testing.T, m *Manager) (out []string) {
	t.Helper()
	all, err := m.List(t.Context())
	must(t, err)
	for _, k := range all {
		out = append(out, k.ID)
	}
	return out
}

func kid(t *testing.T, m *Manager, state storage.KeyState) string {
	t.Helper()
	all, err := m.List(t.Context())
	must(t, err)
	for _, k := range all {
		if k.State == state {
			return k.ID
		}
	}
	t.Fatalf("no key is %s", state)
	return ""
}

func want(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRotation(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	store := openStore(t)
	m := newManager(t, Config{Store: store, Now: func() time.Time { return now }})
	other := newManager(t, Config{Store: store, Now: func() time.Time { return now }})
	old := sign(t, m)
	for range 2 {
		now = now.Add(time.Second)
		if err := m.Rotate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("AS-121 a new key signs nothing before every replica publishes it", func(t *testing.T) {
		for range 2 * known / time.Second {
			token := sign(t, m)
			if err := published(t, other, token); err != nil {
				t.Fatal(err)
			}
			if _, err := other.Verify(t.Context(), token, "at+jwt"); err != nil {
				t.Fatal(err)
			}
			now = now.Add(time.Second)
		}
	})
	fresh := sign(t, m)
	t.Run("AS-121 a new kid signs, the old token still verifies", func(t *testing.T) {
		if strings.Split(old, ".")[0] == strings.Split(fresh, ".")[0] {
			t.Error("the key did not change")
		}
		for _, token := range []string{old, fresh} {
			if err := published(t, m, token); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("AS-121 the old key leaves when its last token has expired and caches are stale", func(t *testing.T) {
		now = now.Add(15*time.Minute + publishedCache)
		if err := published(t, m, old); err == nil {
			t.Error("the retired key is still published")
		}
		if _, err := m.Verify(t.Context(), old, "at+jwt"); !errors.Is(err, ErrVerify) {
			t.Errorf("got %v", err)
		}
		if err := published(t, m, fresh); err != nil {
			t.Error(err)
		}
	})
}

func TestSchedule(t *testing.T) {
	c := installation.NewClock()
	m := newManager(t, Config{Now: c.Now, RotateEvery: 90 * 24 * time.Hour})
	first := sign(t, m)
	c.Advance(90*24*time.Hour - publishAhead - time.Second)
	want(t, tend(t, m), "active")
	t.Run("AS-121 the next key is published before it signs", func(t *testing.T) {
		c.Advance(time.Second)
		want(t, tend(t, m), "active next")
		want(t, tend(t, m), "active next")
		if sign(t, m) != first {
			t.Error("the next key signs already")
		}
		body, _, err := m.JWKS(t.Context())
		must(t, err)
		for _, id := range kids(t, m) {
			if !bytes.Contains(body, []byte(id)) {
				t.Errorf("%s is not in %s", id, body)
			}
		}
	})
	t.Run("AS-121 it signs when every cached key set holds it", func(t *testing.T) {
		c.Advance(publishAhead - time.Second)
		want(t, tend(t, m), "active next")
		c.Advance(time.Second)
		want(t, tend(t, m), "active retired")
		if sign(t, m) == first {
			t.Error("the old key still signs")
		}
		must(t, published(t, m, first))
	})
	t.Run("AS-121 the old one leaves, and after as long again it begins again", func(t *testing.T) {
		c.Advance(15*time.Minute + publishedCache)
		want(t, tend(t, m), "active")
		c.Advance(90*24*time.Hour - 15*time.Minute - publishedCache - publishAhead)
		want(t, tend(t, m), "active next")
	})
	t.Run("without a schedule nothing happens", func(t *testing.T) {
		m := newManager(t, Config{Now: c.Now})
		c.Advance(1000 * 24 * time.Hour)
		want(t, tend(t, m), "active")
	})
}

func TestPublish(t *testing.T) {
	c := installation.NewClock()
	store := openStore(t)
	m := newManager(t, Config{Store: store, Now: c.Now})
	server := newManager(t, Config{Store: store, Now: c.Now})
	next, err := m.Publish(t.Context())
	must(t, err)
	again, err := m.Publish(t.Context())
	must(t, err)
	if again.ID != next.ID || next.Private != nil {
		t.Errorf("got %+v, then %+v", next, again)
	}
	c.Advance(publishAhead)
	want(t, tend(t, server), "active retired")
	if token := sign(t, server); !strings.Contains(header(t, token), next.ID) {
		t.Errorf("got %s, want a signature by %s", header(t, token), next.ID)
	}
	t.Run("rotating at once promotes a key that is published", func(t *testing.T) {
		next, err := m.Publish(t.Context())
		must(t, err)
		must(t, m.Rotate(t.Context()))
		want(t, states(t, m), "active retired retired")
		c.Advance(known)
		if token := sign(t, m); !strings.Contains(header(t, token), next.ID) {
			t.Errorf("got %s", header(t, token))
		}
	})
}

func TestRevoke(t *testing.T) {
	c := installation.NewClock()
	m := newManager(t, Config{Now: c.Now})
	stolen := sign(t, m)
	next, err := m.Publish(t.Context())
	must(t, err)
	t.Run("the active key goes at once, with all that it signed, and the next one waits", func(t *testing.T) {
		must(t, m.Revoke(t.Context(), kid(t, m, storage.KeyActive)))
		if _, err := m.Verify(t.Context(), stolen, "at+jwt"); !errors.Is(err, ErrVerify) {
			t.Errorf("got %v", err)
		}
		if published(t, m, stolen) == nil {
			t.Error("the key is still published")
		}
		fresh := sign(t, m)
		must(t, published(t, m, fresh))
		if strings.Contains(header(t, fresh), next.ID) {
			t.Error("the next key was promoted ahead of its time")
		}
	})
	t.Run("AS-226 a token of the key that replaced it is known to every replica at once", func(t *testing.T) {
		other := newManager(t, Config{Store: m.cfg.Store, Now: c.Now})
		c.Advance(time.Second)
		must(t, m.RevokeAll(t.Context()))
		if _, err := other.Verify(t.Context(), sign(t, m), "at+jwt"); err != nil {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a retired key goes", func(t *testing.T) {
		old := sign(t, m)
		id := kids(t, m)
		must(t, m.Rotate(t.Context()))
		must(t, published(t, m, old))
		must(t, m.Revoke(t.Context(), id...))
		if published(t, m, old) == nil {
			t.Error("the key is still published")
		}
	})
	t.Run("one that is gone is not found", func(t *testing.T) {
		if err := m.Revoke(t.Context(), next.ID); !errors.Is(err, ErrNotFound) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("all: what was published is out, and there is one new key", func(t *testing.T) {
		before := sign(t, m)
		must(t, m.Rotate(t.Context()))
		_, err := m.Publish(t.Context())
		must(t, err)
		ids := kids(t, m)
		must(t, m.RevokeAll(t.Context()))
		want(t, states(t, m), "active")
		if slices.Contains(ids, kids(t, m)[0]) || published(t, m, before) == nil {
			t.Error("an old key is still there")
		}
		must(t, published(t, m, sign(t, m)))
	})
}

func TestAnotherAlgorithm(t *testing.T) {
	c := installation.NewClock()
	store := openStore(t)
	before := newManager(t, Config{Store: store, Now: c.Now})
	old := sign(t, before)
	c.Advance(time.Second)
	_, err := before.Publish(t.Context())
	must(t, err)
	c.Advance(time.Minute)
	after := newManager(t, Config{Store: store, Now: c.Now, Algorithm: "EdDSA"})
	t.Run("AS-119 its first key signs at once, and those of the old one still verify", func(t *testing.T) {
		fresh := sign(t, after)
		if !strings.Contains(header(t, fresh), "EdDSA") {
			t.Errorf("got %s", header(t, fresh))
		}
		for _, token := range []string{old, fresh} {
			must(t, published(t, after, token))
		}
		c.Advance(cacheTTL)
		if sign(t, before) != old {
			t.Error("a replica with the old configuration signs otherwise")
		}
	})
	t.Run("AS-119 the old ones retire when replicas have had time to follow, not the new one", func(t *testing.T) {
		want(t, tend(t, after), "active active next")
		c.Advance(publishAhead)
		want(t, tend(t, before), "active active next")
		for range 3 {
			tend(t, after)
			tend(t, before)
		}
		all, err := after.List(t.Context())
		must(t, err)
		for _, k := range all {
			if (k.State == storage.KeyRetired) != (k.Algorithm == "ES256") {
				t.Errorf("%s is %s", k.Algorithm, k.State)
			}
		}
		must(t, published(t, after, old))
	})
	t.Run("a replica that is still configured for the old one signs with the new", func(t *testing.T) {
		c.Advance(cacheTTL)
		token := sign(t, before)
		must(t, published(t, after, token))
		if !strings.Contains(header(t, token), "EdDSA") {
			t.Errorf("got %s", header(t, token))
		}
	})
	t.Run("the configuration that all have at last wins, whatever was rotated meanwhile", func(t *testing.T) {
		late := newManager(t, Config{Store: store, Now: c.Now})
		must(t, late.Rotate(t.Context()))
		c.Advance(rollout - time.Second)
		tend(t, late)
		want(t, tend(t, late), "active retired") // the earlier keys are gone
		want(t, tend(t, after), "active retired")
		c.Advance(time.Second)
		want(t, tend(t, after), "active active retired")
		c.Advance(publishAhead)
		want(t, tend(t, after), "active retired retired")
		if token := sign(t, after); !strings.Contains(header(t, token), "EdDSA") {
			t.Errorf("got %s", header(t, token))
		}
	})
}

func TestManyReplicas(t *testing.T) {
	store := openStore(t)
	var mu sync.Mutex
	ids := map[string]bool{}
	replicas := make([]*Manager, 32)
	var wg sync.WaitGroup
	for i := range replicas {
		wg.Go(func() {
			m, err := New(t.Context(), Config{Store: store, SecretKeys: [][]byte{master}})
			if err != nil {
				t.Error(err)
				return
			}
			token, err := m.Sign(t.Context(), "at+jwt", claims{"x"})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			replicas[i], ids[token] = m, true
		})
	}
	wg.Wait()
	if len(ids) != 1 {
		t.Errorf("32 replicas started with %d different keys, want 1", len(ids))
	}
	t.Run("AS-121 32 rotations at once are one", func(t *testing.T) {
		for _, m := range replicas {
			wg.Go(func() {
				if err := m.Rotate(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		all, err := replicas[0].List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		active := 0
		for _, k := range all {
			if k.State == storage.KeyActive {
				active++
			}
			if k.Private != nil {
				t.Error("List shows a private key")
			}
		}
		if active != 1 {
			t.Errorf("got %d active keys of %d, want 1", active, len(all))
		}
	})
	t.Run("AS-121 32 replicas that tend the keys rotate once", func(t *testing.T) {
		c := installation.NewClock()
		store := openStore(t)
		for i := range replicas {
			replicas[i] = newManager(t, Config{Store: store, Now: c.Now, RotateEvery: time.Hour})
		}
		for range 12 {
			c.Advance(5 * time.Minute)
			for _, m := range replicas {
				wg.Go(func() {
					if err := m.Tend(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
		want(t, states(t, replicas[0]), "active retired")
	})
}

func TestMasterKeyChange(t *testing.T) {
	oldKey, newKey := master, bytes.Repeat([]byte{8}, 32)
	store := openStore(t)
	c := installation.NewClock()
	start := func(masters ...[]byte) *Manager {
		return newManager(t, Config{Store: store, Now: c.Now, SecretKeys: masters})
	}
	fingerprint := func(m []byte) []byte {
		ring, err := secrets.NewRing(m)
		must(t, err)
		return ring.Fingerprint()
	}
	_, err := store.Fingerprint(t.Context(), fingerprint(oldKey))
	must(t, err)
	onlyOld := start(oldKey)
	token := sign(t, onlyOld)
	_, err = onlyOld.Publish(t.Context())
	must(t, err)

	primary := start(newKey, oldKey)
	var wg sync.WaitGroup
	var mu sync.Mutex
	sealed := 0
	for range 8 {
		m := start(newKey, oldKey)
		wg.Go(func() {
			n, err := m.Reseal(t.Context())
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			sealed += n
		})
	}
	wg.Wait()
	t.Run("every key is sealed again once, by one of the replicas", func(t *testing.T) {
		if sealed != 2 {
			t.Errorf("sealed %d keys, want 2", sealed)
		}
		if n, err := primary.Reseal(t.Context()); n != 0 || err != nil {
			t.Errorf("again: got %d, %v", n, err)
		}
		if fp, err := store.Fingerprint(t.Context(), nil); err != nil || !bytes.Equal(fp, fingerprint(newKey)) {
			t.Errorf("the fingerprint is not the new one: %x, %v", fp, err)
		}
	})
	t.Run("the old master key can be dropped, the tokens stay good", func(t *testing.T) {
		m := start(newKey)
		if got := sign(t, m); got != token {
			t.Error("it signs with another key")
		}
		must(t, published(t, m, token))
		if _, err := m.Verify(t.Context(), token, "at+jwt"); err != nil {
			t.Error(err)
		}
	})
	t.Run("a replica that runs with the old one alone signs on, also after a rotation", func(t *testing.T) {
		c.Advance(cacheTTL)
		want(t, sign(t, onlyOld), token)
		c.Advance(publishAhead)
		if err := onlyOld.Tend(t.Context()); err == nil {
			t.Error("it promoted a key that it cannot open")
		}
		must(t, primary.Tend(t.Context()))
		c.Advance(cacheTTL)
		want(t, sign(t, onlyOld), token)
		if sign(t, primary) == token {
			t.Error("the next key was not promoted")
		}
	})
	t.Run("but never with a key that was revoked", func(t *testing.T) {
		must(t, primary.Revoke(t.Context(), kid(t, primary, storage.KeyRetired)))
		c.Advance(cacheTTL)
		if token, err := onlyOld.Sign(t.Context(), "at+jwt", claims{"alice"}); err == nil {
			t.Errorf("got %s", token)
		}
		if onlyOld.Ready(t.Context()) == nil {
			t.Error("it is ready")
		}
		_, _, err := onlyOld.JWKS(t.Context())
		must(t, err)
	})
	t.Run("without the master key that sealed a key nothing is moved", func(t *testing.T) {
		third := bytes.Repeat([]byte{7}, 32)
		m := &Manager{cfg: primary.cfg, ring: mustRing(t, third)}
		if _, err := m.Reseal(t.Context()); err == nil || !strings.Contains(err.Error(), "old ones") {
			t.Errorf("got %v", err)
		}
		if fp, err := store.Fingerprint(t.Context(), nil); err != nil || !bytes.Equal(fp, fingerprint(newKey)) {
			t.Errorf("the fingerprint has moved: %x, %v", fp, err)
		}
	})
}

func mustRing(t *testing.T, master []byte) *secrets.Ring {
	t.Helper()
	ring, err := secrets.NewRing(master)
	must(t, err)
	return ring
}
