package storagetest

import (
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Damaged checks that a row with a value that no version writes is an error of the store. It must
// not be treated as a wrong credential. open is like Transition's.
func Damaged(t *testing.T, open func(t *testing.T) (storage.Store, func(query string, args ...any))) {
	s, damage := open(t)
	e := newEnv(t, s)
	a := e.approved(t)
	damage("UPDATE grants SET code_hash = substr(code_hash, 1, 31) WHERE id = ?", a.Grant.ID)
	_, err := s.RedeemCode(e.ctx, e.redemption(a))
	if err == nil || !strings.Contains(err.Error(), "a hash in the database has 31 bytes") {
		t.Errorf("a code whose hash is cut off: got %v, want the fault of the row", err)
	}
}
