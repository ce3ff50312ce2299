package auditlog

import (
	"crypto/ed25519"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/internal/keys"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Limits of the entries in memory, for tests.
const (
	AsideAt    = asideAt
	MaxWaiting = maxWaiting
)

// Rewrite builds a log from entries as our program would, for tests that attack it.
func Rewrite(t *testing.T, store storage.AuditLog, entries []storage.AuditEntry) int64 {
	e := &edge{tiles: map[tileKey][]byte{}}
	var leaves []tlog.Hash
	for i := range entries {
		entries[i].Index = int64(i)
		leaves = append(leaves, tlog.RecordHash(entries[i].Leaf))
	}
	_, tiles := e.grow(leaves)
	if err := store.AppendAudit(t.Context(), "", 0, func(storage.AuditEnd) (storage.AuditAppend, error) {
		return storage.AuditAppend{Entries: entries, Tiles: tiles}, nil
	}); err != nil {
		t.Fatal(err)
	}
	return int64(len(entries))
}

// SignAll signs a whole log like a version without seals.
func SignAll(t *testing.T, store Store, key keys.AuditKey) storage.AuditCheckpoint {
	head, err := store.AuditHead(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	s := &Signer{store: store, key: key}
	c := verify.Checkpoint{Origin: key.Origin, Size: head.Size}
	if c.Root, err = tlog.TreeHash(head.Size, readStored(t.Context(), store)); err != nil {
		t.Fatal(err)
	}
	text, err := note.NewEd25519VerifierKey(key.Origin, key.Private.Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	v, err := note.NewVerifier(text)
	if err != nil {
		t.Fatal(err)
	}
	s.hash = v.KeyHash()
	signed, err := note.Sign(&note.Note{Text: c.Text()}, s)
	if err != nil {
		t.Fatal(err)
	}
	return storage.AuditCheckpoint{Size: head.Size, At: time.Now().UTC().Truncate(time.Millisecond), Signed: signed}
}

// Included returns an entry with its inclusion proof in the log of a size.
func Included(t *testing.T, store Store, size int64, e storage.AuditEntry) verify.Proved {
	p, err := tlog.ProveRecord(size, e.Index, readStored(t.Context(), store))
	if err != nil {
		t.Fatal(err)
	}
	return verify.Proved{Index: e.Index, Leaf: string(e.Leaf), Proof: p}
}
