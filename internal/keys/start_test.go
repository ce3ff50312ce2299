package keys

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/storagetest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
)

// A server that cannot store its first key, or read it back, does not start. It would have no
// signing key, or one that no other replica publishes.
func TestStartFails(t *testing.T) {
	for n := range 10 {
		store := storagetest.NewFailing(openStore(t))
		config := Config{Store: store, SecretKeys: [][]byte{master}}
		store.Arm(n)
		m, err := New(t.Context(), config)
		failed, called := store.Disarm()
		if failed == "" {
			if err != nil || n < 3 {
				t.Fatalf("without a failure: got %v after %v", err, called)
			}
			return
		}
		if !errors.Is(err, storagetest.ErrInjected) || m != nil {
			t.Errorf("AS-121: %s fails: got %v, want its error", failed, err)
		}
		m, err = New(t.Context(), config)
		must(t, err)
		must(t, published(t, m, sign(t, m)))
	}
	t.Fatal("more than 10 calls")
}

func TestConfigured(t *testing.T) {
	for ahead, want := range map[time.Duration]time.Duration{0: 10 * time.Minute, time.Hour: time.Hour, -1: 0} {
		if got := newManager(t, Config{PublishAhead: ahead}).PublishAhead(); got != want {
			t.Errorf("AS-121: published ahead by %s: got %s, want %s", ahead, got, want)
		}
	}
	m := newManager(t, Config{Algorithm: "RS256"})
	body, _, err := m.JWKS(t.Context())
	must(t, err)
	var set jose.JSONWebKeySet
	must(t, json.Unmarshal(body, &set))
	key, ok := set.Keys[0].Key.(interface{ Size() int })
	if !ok || key.Size() != 2048/8 || set.Keys[0].Algorithm != "RS256" || set.Keys[0].Use != "sig" {
		t.Errorf("AS-119 RFC 7518 3.3: got %+v", set.Keys[0])
	}
}

// TestSettled: among keys created within seconds of each other, a retired or next key never signs
// if the active one has been published long enough.
func TestSettled(t *testing.T) {
	at := installation.NewClock().Now()
	key := func(id string, state storage.KeyState, made time.Duration) storage.SigningKey {
		return storage.SigningKey{ID: id, Algorithm: "ES256", State: state, CreatedAt: at.Add(made)}
	}
	other := key("other", storage.KeyActive, 0)
	other.Algorithm = "EdDSA"
	for _, tt := range []struct {
		name   string
		age    time.Duration // time since the read
		stored []storage.SigningKey
		want   string
	}{
		{"alone and new", 0, []storage.SigningKey{key("a", storage.KeyActive, 0)}, "a"},
		{"alone and known", time.Minute, []storage.SigningKey{key("a", storage.KeyActive, 0)}, "a"},
		{"new: the one before", time.Second,
			[]storage.SigningKey{key("r", storage.KeyRetired, -time.Hour), key("a", storage.KeyActive, 0)}, "r"},
		{"just not known: the one before", known - 1,
			[]storage.SigningKey{key("r", storage.KeyRetired, -time.Hour), key("a", storage.KeyActive, 0)}, "r"},
		{"known: itself", known,
			[]storage.SigningKey{key("r", storage.KeyRetired, -time.Hour), key("a", storage.KeyActive, 0)}, "a"},
		{"known, with one of the same moment behind it", time.Minute,
			[]storage.SigningKey{key("a", storage.KeyActive, 0), key("r", storage.KeyRetired, 0)}, "a"},
		{"known, with one of the same moment before it", time.Minute,
			[]storage.SigningKey{key("r", storage.KeyRetired, 0), key("a", storage.KeyActive, 0)}, "a"},
		{"new, with a next one", time.Second,
			[]storage.SigningKey{key("n", storage.KeyNext, -time.Hour), key("a", storage.KeyActive, 0)}, "a"},
		{"new, with one of another algorithm", time.Second,
			[]storage.SigningKey{other, key("a", storage.KeyActive, 0)}, "a"},
		{"known, with a younger one that was revoked for it", time.Minute,
			[]storage.SigningKey{key("a", storage.KeyActive, 0), key("r", storage.KeyRetired, time.Second)}, "a"},
		{"of three in a row, the last that is known", time.Second,
			[]storage.SigningKey{
				key("r1", storage.KeyRetired, -time.Hour), key("r2", storage.KeyRetired, -time.Minute),
				key("a", storage.KeyActive, 0)}, "r2"},
		{"of three at once, the oldest", time.Second,
			[]storage.SigningKey{
				key("r1", storage.KeyRetired, -2*time.Second), key("r2", storage.KeyRetired, -time.Second),
				key("a", storage.KeyActive, 0)}, "r1"},
	} {
		t.Run("AS-226 "+tt.name, func(t *testing.T) {
			s := &set{readAt: at.Add(tt.age), stored: tt.stored}
			if got := s.settled(s.find("ES256", storage.KeyActive)); got.ID != tt.want {
				t.Errorf("got %s, want %s", got.ID, tt.want)
			}
		})
	}
}

// A key that cannot be created causes an error, and stores nothing.
func TestKeyThatCannotBeMade(t *testing.T) {
	m := newManager(t, Config{})
	active := kid(t, m, storage.KeyActive)
	m.cfg.Algorithm = "HS256"
	for name, act := range map[string]func() error{
		"publish": func() error { _, err := m.publish(t.Context(), active); return err },
		"replace": func() error { return m.replace(t.Context(), active) },
		"ensure":  func() error { return m.ensure(t.Context()) },
	} {
		if err := act(); err == nil || !strings.Contains(err.Error(), "HS256") {
			t.Errorf("AS-119 %s: got %v, want the algorithm named", name, err)
		}
		if got := kids(t, m); len(got) != 1 || got[0] != active {
			t.Errorf("AS-119 %s: got %v, want %s alone", name, got, active)
		}
	}
}
