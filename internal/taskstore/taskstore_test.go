package taskstore_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/taskstore"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/tasktest"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/storage/postgres"
	"github.com/mcp-authd/mcp-authd/storage/sqlite"
)

func over(t *testing.T, s storage.Store, err error, now func() time.Time) mcpresource.TaskStore {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	ring, err := secrets.NewRing(make([]byte, secrets.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	store, err := taskstore.New(s, "https://mcp.example.com/mcp", ring, now)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestSQLite(t *testing.T) {
	tasktest.Run(t, tasktest.Store{Open: func(t *testing.T, now func() time.Time) [2]mcpresource.TaskStore {
		s, err := sqlite.Open(context.Background(), filepath.Join(t.TempDir(), "db"), sqlite.Options{})
		store := over(t, s, err, now)
		return [2]mcpresource.TaskStore{store, store}
	}})
}

func TestPostgreSQL(t *testing.T) {
	server := pgtest.Start(t)
	open := func(t *testing.T, now func() time.Time) (both [2]mcpresource.TaskStore) {
		url := server.Database(t)
		for i := range both {
			s, err := postgres.Open(context.Background(), url, postgres.Options{})
			both[i] = over(t, s, err, now)
		}
		return both
	}
	tasktest.Run(t, tasktest.Store{Open: open})
}
