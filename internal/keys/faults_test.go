package keys

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/storagetest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
)

// TestFailuresAreTold: if any call of the store fails, the administrator's command returns an
// error, and repeating it succeeds. Otherwise an administrator could remove a master key after an
// incomplete change, and lose the signing keys.
func TestFailuresAreTold(t *testing.T) {
	oldKey, newKey := master, bytes.Repeat([]byte{8}, 32)
	for name, act := range map[string]func(ctx context.Context, m *Manager) error{
		"Reseal":    func(ctx context.Context, m *Manager) error { _, err := m.Reseal(ctx); return err },
		"Rotate":    func(ctx context.Context, m *Manager) error { return m.Rotate(ctx) },
		"Publish":   func(ctx context.Context, m *Manager) error { _, err := m.Publish(ctx); return err },
		"Tend":      func(ctx context.Context, m *Manager) error { return m.Tend(ctx) },
		"RevokeAll": func(ctx context.Context, m *Manager) error { return m.RevokeAll(ctx) },
		"Revoke": func(ctx context.Context, m *Manager) error {
			all, err := m.List(ctx)
			if err != nil {
				return err
			}
			for _, k := range all {
				if k.State == storage.KeyActive {
					return m.Revoke(ctx, k.ID)
				}
			}
			return ErrNotFound
		},
	} {
		t.Run("AS-121 "+name, func(t *testing.T) {
			for n := range 30 {
				c := installation.NewClock()
				store := storagetest.NewFailing(openStore(t))
				config := func(masters ...[]byte) Config {
					return Config{Store: store, Now: c.Now, SecretKeys: masters, RotateEvery: 24 * time.Hour}
				}
				newManager(t, config(oldKey))
				m := newManager(t, config(newKey, oldKey))
				c.Advance(48 * time.Hour) // a rotation is due
				store.Arm(n)
				err := act(t.Context(), m)
				failed, called := store.Disarm()
				if failed == "" {
					if err != nil {
						t.Fatalf("without a failure: %v", err)
					}
					if n < 2 {
						t.Fatalf("only %v were called", called)
					}
					return
				}
				// it continued with the cached keys
				if known := failed == "Keys" && len(called) > n+1; err == nil && !known {
					t.Errorf("%s fails (call %d of %v): got nil, want an error", failed, n+1, called)
				}
				if err := act(t.Context(), m); err != nil {
					t.Errorf("%s had failed, and again: %v", failed, err)
				}
			}
			t.Fatal("more than 30 calls")
		})
	}
}

// spoilt is a store with a damaged public key.
type spoilt struct {
	storage.Store
	now bool
}

func (s *spoilt) Keys(ctx context.Context, now time.Time) ([]storage.SigningKey, error) {
	list, err := s.Store.Keys(ctx, now)
	for i := range list {
		if s.now {
			list[i].Public = []byte("{")
		}
	}
	return list, err
}

// A damaged key causes an error that names it, at the start and later.
func TestDamagedKey(t *testing.T) {
	c := installation.NewClock()
	store := &spoilt{Store: openStore(t)}
	m := newManager(t, Config{Store: store, Now: c.Now})
	want := "public key " + m.current.signer.id
	token := sign(t, m)
	store.now = true
	c.Advance(cacheTTL)
	if _, err := m.Verify(t.Context(), token, "at+jwt"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	if _, err := New(t.Context(), Config{Store: store, Now: c.Now, SecretKeys: [][]byte{master}}); err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("at the start: got %v, want %q", err, want)
	}
}
