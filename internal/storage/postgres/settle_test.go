package postgres

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// TestManySettleAtOnce: verbs that find their work done do not wait for each other. Nor do they
// fail on each other on a server with serializable isolation only.
func TestManySettleAtOnce(t *testing.T) {
	s := open(t, serializable(t).Database(t)+"&default_transaction_isolation=serializable", Options{})
	defer s.Close()
	now := time.Now()
	const people = 48
	for i := range people {
		u := storage.User{ID: fmt.Sprintf("usr_%d", i), Name: fmt.Sprintf("person%d", i), CreatedAt: now}
		if err := s.CreateUser(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for i := range people {
		wg.Go(func() {
			for range 20 {
				if err := s.SetUserDisabled(t.Context(), fmt.Sprintf("usr_%d", i), true, now); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}
