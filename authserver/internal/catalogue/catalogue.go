// Package catalogue keeps the protected resources at hand: the configured ones and those in
// the store.
package catalogue

import (
	"context"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/policy"
	"github.com/mcp-authd/mcp-authd/storage"
)

// TTL bounds how long a resource added or removed by another process
// stays unseen.
const TTL = 2 * time.Second

// Catalogue is the current policy.Catalogue: the configured resources and the
// stored ones, read again when older than TTL.
type Catalogue struct {
	configured []storage.Resource
	store      storage.Resources
	now        func() time.Time

	mu      sync.Mutex // guards what follows; held while it is read again
	current *policy.Catalogue
	askedAt time.Time // when it was read, or could not be
}

// New reads the catalogue for the first time.
func New(ctx context.Context, configured []storage.Resource, store storage.Resources, now func() time.Time) (*Catalogue, error) {
	c := &Catalogue{configured: configured, store: store, now: now}
	_, err := c.Load(ctx)
	return c, err
}

// Load returns the catalogue. When the store fails, an earlier one is served on:
// resources change seldom, and whoever needs the store will see its error.
func (c *Catalogue) Load(ctx context.Context) (*policy.Catalogue, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != nil {
		if c.now().Sub(c.askedAt) < TTL {
			return c.current, nil
		}
		// Whoever waits behind this reading could do with what is known.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, TTL)
		defer cancel()
	}
	stored, err := c.store.ListResources(ctx)
	if err != nil {
		if c.current != nil {
			c.askedAt = c.now()
			return c.current, nil
		}
		return nil, err
	}
	all := append(append([]storage.Resource{}, c.configured...), stored...)
	fresh, err := policy.NewCatalogue(all)
	if err != nil {
		return nil, err
	}
	c.current, c.askedAt = fresh, c.now()
	return fresh, nil
}
