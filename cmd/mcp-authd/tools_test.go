package main

import (
	"context"
	"crypto/sha256"
	"path/filepath"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
)

// scriptSeen implements seen DIR RESOURCE TOOL DEFINITION: the gateway has seen the definition of a
// tool in a list.
func scriptSeen(ts *testscript.TestScript, _ bool, args []string) {
	store, err := sqlite.Open(context.Background(), filepath.Join(ts.MkAbs(args[0]), "mcp-authd.db"), sqlite.Options{})
	ts.Check(err)
	defer store.Close()
	_, err = store.SeeTools(context.Background(), args[1], map[string]storage.ToolDefinition{
		args[2]: {Digest: sha256.Sum256([]byte(args[3])), Text: args[3], At: time.Now()},
	}, true)
	ts.Check(err)
}
