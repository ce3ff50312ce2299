// Package timed wraps a store and reports the duration of each verb.
package timed

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Took is called after each verb, with its duration and error. ctx is the verb's context.
type Took func(ctx context.Context, verb string, began time.Time, took time.Duration, err error)

// New returns store with each verb timed by the clock now. The verbs are in verbs.go, which go
// generate ./internal/storage/storagetest writes.
func New(store storage.Store, now func() time.Time, took Took) storage.Store {
	return &timed{store, now, took}
}

type timed struct {
	storage.Store
	now  func() time.Time
	took Took
}

// Attend calls Attend of a store that serves one server at a time. Other stores report no other
// processes.
func (t *timed) Attend() (processes []string, err error) {
	if store, ok := t.Store.(interface{ Attend() ([]string, error) }); ok {
		return store.Attend()
	}
	return nil, nil
}

func (t *timed) end(ctx context.Context, verb string, began time.Time, err *error) {
	t.took(ctx, verb, began, t.now().Sub(began), *err)
}
