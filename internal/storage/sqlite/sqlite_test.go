package sqlite

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/storagetest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
)

func open(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(context.Background(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestContractInFile(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Store { return open(t, filepath.Join(t.TempDir(), "db")) })
}

func TestContractInMemory(t *testing.T) {
	lane.Long(t, "TestContractInFile runs the contract on a file")
	storagetest.Run(t, func(t *testing.T) storage.Store { return open(t, Memory) })
}

func BenchmarkFile(b *testing.B) {
	storagetest.Bench(b, func(b *testing.B) storage.Store { return open(b, filepath.Join(b.TempDir(), "db")) })
}

func TestTokensOfOlderReplicas(t *testing.T) {
	storagetest.Transition(t, openEditable)
}

func TestHooks(t *testing.T) {
	storagetest.Hooks(t, open(t, filepath.Join(t.TempDir(), "db")))
	storagetest.Hooks(t, open(t, Memory))
}

func TestDamagedRows(t *testing.T) { storagetest.Damaged(t, openEditable) }

func TestDeliveriesOverflow(t *testing.T) { storagetest.Overflow(t, openEditable) }

// openEditable opens an empty store, and returns a function that changes its rows by SQL.
func openEditable(t *testing.T) (storage.Store, func(query string, args ...any)) {
	s := open(t, filepath.Join(t.TempDir(), "db"))
	return s, func(query string, args ...any) {
		t.Helper()
		if err := s.write(context.Background(), "test",
			func(c *conn) error { return run(c, query, args...)() }); err != nil {
			t.Fatalf("%v: %s", err, query)
		}
	}
}

func TestPauseElsewhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	elsewhere := open(t, path)
	t.Cleanup(func() { elsewhere.Close() })
	storagetest.PauseElsewhere(t, open(t, path), elsewhere)
}
