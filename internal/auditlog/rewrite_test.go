package auditlog

import (
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/mcp-authd/mcp-authd/storage"
)

// Rewrite makes a log of entries as our program would, for tests that attack it.
func Rewrite(t *testing.T, store storage.AuditLog, entries []storage.AuditEntry) int64 {
	e := &edge{tiles: map[tileKey][]byte{}}
	var leaves []tlog.Hash
	for i := range entries {
		entries[i].Index = int64(i)
		leaves = append(leaves, tlog.RecordHash(entries[i].Leaf))
	}
	_, tiles := e.grow(leaves)
	if err := store.AppendAudit(t.Context(), storage.AuditAppend{Entries: entries, Tiles: tiles}); err != nil {
		t.Fatal(err)
	}
	return int64(len(entries))
}
