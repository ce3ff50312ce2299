package keys

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
)

// tokenManager returns the manager of a replica on a database.
func tokenManager(t *testing.T, store storage.Store, masters ...[]byte) (*Manager, error) {
	t.Helper()
	return New(t.Context(), Config{Store: store, SecretKeys: masters, Now: installation.NewClock().Now})
}

func fileStore(t *testing.T) *sqlite.Store {
	t.Helper()
	s := installation.Store(t)
	return s
}

var one, two = bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)

// TestTheTokenKey: all replicas share one token key. It is sealed in the database and survives a
// change of the master key (issue 12, 1.1).
func TestTheTokenKey(t *testing.T) {
	s := fileStore(t)
	got := make([][]byte, 8)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			m, err := tokenManager(t, s, one)
			if err != nil {
				t.Error(err)
				return
			}
			got[i] = m.TokenKey()
		})
	}
	wg.Wait()
	key := got[0]
	for i, k := range got {
		if !bytes.Equal(k, key) || len(k) != 32 {
			t.Errorf("replica %d has another key", i)
		}
	}
	sealed, err := s.SharedKey(t.Context(), tokenKeyName, nil)
	must(t, err)
	if len(sealed) == 0 || bytes.Contains(sealed, key) {
		t.Error("it is stored in clear, or not at all")
	}
	if _, err := tokenManager(t, s, two); err == nil {
		t.Error("it was opened with another master key")
	}

	m, err := tokenManager(t, s, two, one)
	must(t, err)
	_, err = m.Reseal(t.Context())
	must(t, err)
	m, err = tokenManager(t, s, two)
	must(t, err)
	if !bytes.Equal(m.TokenKey(), key) {
		t.Error("it did not outlive the change of the master key")
	}
}

// A replica notices a new token key at its next read at the latest. It restores its known key in a
// database that has lost it.
func TestTheTokenKeyIsRenewed(t *testing.T) {
	s, c := fileStore(t), installation.NewClock()
	replica, err := New(t.Context(), Config{Store: s, SecretKeys: [][]byte{one}, Now: c.Now})
	must(t, err)
	other, err := tokenManager(t, s, one)
	must(t, err)
	old := replica.TokenKey()
	must(t, other.RenewTokenKey(t.Context()))
	if bytes.Equal(other.TokenKey(), old) {
		t.Fatal("it is the same key")
	}
	if got, err := replica.NewerTokenKey(t.Context()); err != nil || !bytes.Equal(got, old) {
		t.Errorf("a token of another key was looked after at once: callers who send junk cost a read each (%v)", err)
	}
	c.Advance(rereadPause)
	if got, err := replica.NewerTokenKey(t.Context()); err != nil || !bytes.Equal(got, other.TokenKey()) {
		t.Errorf("the replica has not learnt of it: %v", err)
	}
	c.Advance(rereadPause)
	away := &forgetful{Store: s, err: errors.New("away")}
	replica.cfg.Store = away
	for range 2 {
		if _, err := replica.NewerTokenKey(t.Context()); !errors.Is(err, away.err) {
			t.Errorf("while the database is away: got %v", err)
		}
	}
	replica.cfg.Store = s
	must(t, other.RenewTokenKey(t.Context()))
	must(t, replica.Tend(t.Context()))
	if !bytes.Equal(replica.TokenKey(), other.TokenKey()) {
		t.Error("the replica has not learnt of it by itself")
	}

	bare := &forgetful{Store: s}
	replica.cfg.Store = bare
	must(t, replica.Tend(t.Context()))
	key, err := replica.ring.Open(tokenKeyName, bare.sealed, nil)
	if err != nil || !bytes.Equal(key, replica.TokenKey()) {
		t.Errorf("the database was given %x, %v", key, err)
	}
}

// forgetful is a store that has lost the shared keys.
type forgetful struct {
	storage.Store
	sealed []byte
	err    error
}

func (f *forgetful) SharedKey(_ context.Context, _ string, sealed []byte) ([]byte, error) {
	if f.sealed == nil {
		f.sealed = sealed
	}
	return f.sealed, f.err
}

func (f *forgetful) ReplaceSharedKey(context.Context, string, []byte, []byte) error {
	return errors.New("not asked for")
}
