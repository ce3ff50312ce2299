package installation

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
)

// TestNew checks that installations share nothing, and that a server can start with each store.
func TestNew(t *testing.T) {
	one, two := New(t), New(t)
	alice := storage.User{ID: "usr_1", Name: "alice", CreatedAt: one.Now()}
	if err := one.Store.CreateUser(t.Context(), alice); err != nil {
		t.Fatal(err)
	}
	for i, want := range map[*Installation]int{one: 1, two: 0} {
		users, err := i.Store.ListUsers(t.Context(), "", 10)
		if err != nil || len(users) != want {
			t.Errorf("got %d users, %v, want %d", len(users), err, want)
		}
		if err := i.Store.Ready(t.Context()); err != nil {
			t.Error(err)
		}
	}
	start := two.Now()
	one.Advance(time.Hour)
	two.Set(start.Add(time.Hour))
	if !one.Now().Equal(two.Now()) || one.Now().Equal(start) {
		t.Errorf("the clocks show %v and %v", one.Now(), two.Now())
	}
	one.Audit.Record(t.Context(), audit.LoginFailed)
	if one.Log.Events(audit.LoginFailed) != 1 || two.Log.Events(audit.LoginFailed) != 0 {
		t.Errorf("the logs have\n%s%s", one.Log, two.Log)
	}
}

// BenchmarkOpen compares copying the migrated database with migrating an empty one.
func BenchmarkOpen(b *testing.B) {
	open := func(b *testing.B, path string) {
		s, err := sqlite.Open(b.Context(), path, sqlite.Options{})
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
	b.Run("copy", func(b *testing.B) {
		for b.Loop() {
			path := filepath.Join(b.TempDir(), "db")
			Create(b, path)
			open(b, path)
		}
	})
	b.Run("migrate", func(b *testing.B) {
		for b.Loop() {
			open(b, sqlite.Memory)
		}
	})
}
