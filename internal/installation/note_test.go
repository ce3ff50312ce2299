package installation

import (
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
)

// TestRestoredDatabaseHasNoReplicas checks that the servers of the original database do not count
// as running on a copy (RU-12).
func TestRestoredDatabaseHasNoReplicas(t *testing.T) {
	s, err := sqlite.Open(t.Context(), sqlite.Memory, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	now := time.Now()
	if err := s.SeeReplica(t.Context(), storage.Replica{ID: "a", Name: "a", StartedAt: now, SeenAt: now}); err != nil {
		t.Fatal(err)
	}
	if err := Quiet(nil, Host{}).noteRestore(t.Context(), s, now); err != nil {
		t.Fatal(err)
	}
	if seen, _, err := s.Replicas(t.Context(), now); err != nil || len(seen) > 0 {
		t.Errorf("RU-12: %v, %v", seen, err)
	}
}
