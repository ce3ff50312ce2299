package postgres

import (
	"context"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/pgtest"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/storage/storagetest"
)

func open(t testing.TB, url string, o Options) *Store {
	t.Helper()
	s, err := Open(context.Background(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestContract(t *testing.T) {
	server := pgtest.Start(t)
	storagetest.Run(t, func(t *testing.T) storage.Store { return open(t, server.Database(t), Options{}) })
}
