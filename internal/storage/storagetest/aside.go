package storagetest

import (
	"context"
	"sync"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Aside fills the connections of a store for administrators' queries, and lets it read other data
// at the same time. read calls inside once it has a connection. The store has size connections for
// other requests.
func Aside(t *testing.T, size int, read func(ctx context.Context, inside func()) error) {
	t.Helper()
	var all sync.WaitGroup
	reading, free := make(chan struct{}, 2*size), make(chan struct{})
	ask := func(ctx context.Context) {
		all.Go(func() {
			err := read(ctx, func() {
				reading <- struct{}{}
				<-free
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range size + 1 {
		ask(storage.Aside(t.Context()))
	}
	<-reading // the first of them
	nothing := func() {}
	if err := read(t.Context(), nothing); err != nil {
		t.Error(err)
	}
	close(free)
	all.Wait()
}
