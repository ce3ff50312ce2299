// Package timed is a store that tells how long each of its verbs has taken.
package timed

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
)

// Took is told of each verb that has ended, with its error. The context is that of the verb.
type Took func(ctx context.Context, verb string, began time.Time, took time.Duration, err error)

// New returns store with each verb timed by the clock now. The verbs are in verbs.go, which is
// written by go generate ./storage/storagetest.
func New(store storage.Store, now func() time.Time, took Took) storage.Store {
	return &timed{store, now, took}
}

type timed struct {
	storage.Store
	now  func() time.Time
	took Took
}

// Attend is that of a store for one server at a time; other stores tell of no other servers.
func (t *timed) Attend() (processes []string, err error) {
	if store, ok := t.Store.(interface{ Attend() ([]string, error) }); ok {
		return store.Attend()
	}
	return nil, nil
}

func (t *timed) end(ctx context.Context, verb string, began time.Time, err *error) {
	t.took(ctx, verb, began, t.now().Sub(began), *err)
}
