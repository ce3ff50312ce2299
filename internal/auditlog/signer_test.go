package auditlog_test

import (
	"errors"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/auditlog"
)

// TestSignMeanwhile: OB-04. A signer continues after another replica signs concurrently, and after
// a store failure. It does not mistake either for a restored backup.
func TestSignMeanwhile(t *testing.T) {
	t.Run("another replica appends and signs between two reads", func(t *testing.T) {
		db := onSQLite(t)
		write(t, db, 0, 10)
		store := &meanwhile{Store: db}
		sign := signer(t, store)
		checkpoint(t, sign)
		store.afterFirstRead = func() {
			write(t, db, 10, 5)
			checkpoint(t, signer(t, db))
		}
		if c, err := sign.Checkpoint(t.Context(), time.Now()); err != nil || c.Size != 15 {
			t.Errorf("got %d, %v", c.Size, err)
		}
	})
	away := errors.New("the database is away")
	for name, fault := range map[string]func(*meanwhile, error){
		"the store does not take a checkpoint": func(m *meanwhile, err error) { m.failsToPut = err },
		"hashes cannot be read, of what another replica has signed": func(m *meanwhile, err error) {
			checkpoint(t, signer(t, m.Store))
			m.failsToRead = err
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := onSQLite(t)
			write(t, db, 0, 10)
			store := &meanwhile{Store: db}
			sign := signer(t, store)
			checkpoint(t, sign)
			write(t, db, 10, 5)
			fault(store, away)
			if _, err := sign.Checkpoint(t.Context(), time.Now()); !errors.Is(err, away) ||
				errors.Is(err, auditlog.ErrInconsistent) {
				t.Errorf("while it is away: got %v", err)
			}
			fault(store, nil)
			write(t, db, 15, 5)
			if c, err := sign.Checkpoint(t.Context(), time.Now()); err != nil || c.Size != 20 {
				t.Errorf("after that: got %d, %v", c.Size, err)
			}
			if _, err := auditlog.Verify(t.Context(), db, keyOf(sign)); err != nil {
				t.Error(err)
			}
		})
	}
}
