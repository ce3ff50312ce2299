// Package race has a race, for the test of command report.
package race

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
)

func TestRace(t *testing.T) {
	s, err := sqlite.Open(context.Background(), sqlite.Memory, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var calls int
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			calls++
			_ = s.Spend(t.Context(), "race", "id", time.Now())
			calls++
		})
	}
	all.Wait()
	t.Log(calls)
}
