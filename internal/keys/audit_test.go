package keys

import (
	"bytes"
	"errors"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// TestAuditKey: OB-04. The key of the audit log is created once, keeps its origin, and survives a
// change of the master key.
func TestAuditKey(t *testing.T) {
	store := openStore(t)
	old, next := bytes.Repeat([]byte("o"), 32), bytes.Repeat([]byte("n"), 32)
	if _, err := OpenAuditKey(t.Context(), store, [][]byte{old}, ""); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("before there is one: got %v, want ErrNotFound", err)
	}
	first, err := OpenAuditKey(t.Context(), store, [][]byte{old}, "a.example/audit")
	must(t, err)
	m := newManager(t, Config{Store: store, SecretKeys: [][]byte{next, old}})
	_, err = m.Reseal(t.Context())
	must(t, err)
	again, err := OpenAuditKey(t.Context(), store, [][]byte{next}, "b.example/audit")
	must(t, err)
	if again.Origin != "a.example/audit" || !again.Private.Equal(first.Private) {
		t.Errorf("got the key of %s", again.Origin)
	}
	if _, err := OpenAuditKey(t.Context(), store, [][]byte{old}, ""); err == nil {
		t.Error("the old master key opens it still")
	}
}
