package taskstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/postgres"
	"github.com/mcp-authd/mcp-authd/internal/taskstore"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/tasktest"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

func over(t *testing.T, s storage.Store, now func() time.Time) mcpresource.TaskStore {
	t.Helper()
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
		store := over(t, installation.Store(t), now)
		return [2]mcpresource.TaskStore{store, store}
	}})
}

func TestPostgreSQL(t *testing.T) {
	server := pgtest.Start(t)
	open := func(t *testing.T, now func() time.Time) (both [2]mcpresource.TaskStore) {
		url := server.Database(t)
		for i := range both {
			s, err := postgres.Open(context.Background(), url, postgres.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			both[i] = over(t, s, now)
		}
		return both
	}
	tasktest.Run(t, tasktest.Store{Open: open})
}
