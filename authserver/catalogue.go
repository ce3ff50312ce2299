package authserver

import (
	"context"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/policy"
	"github.com/mcp-authd/mcp-authd/storage"
)

// catalogueTTL bounds how long a resource added or removed by another process
// stays unseen.
const catalogueTTL = 2 * time.Second

// catalogue is the current policy.Catalogue: the configured resources and the
// stored ones, read again when older than catalogueTTL.
type catalogue struct {
	configured []storage.Resource
	store      storage.Resources
	now        func() time.Time

	mu      sync.Mutex // guards current and readAt
	current *policy.Catalogue
	readAt  time.Time
}

func newCatalogue(ctx context.Context, configured []storage.Resource, store storage.Resources, now func() time.Time) (*catalogue, error) {
	c := &catalogue{configured: configured, store: store, now: now}
	_, err := c.load(ctx)
	return c, err
}

// load returns the catalogue. When the store fails, an earlier one is served on:
// resources change seldom, and whoever needs the store will see its error.
func (c *catalogue) load(ctx context.Context) (*policy.Catalogue, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != nil && c.now().Sub(c.readAt) < catalogueTTL {
		return c.current, nil
	}
	stored, err := c.store.ListResources(ctx)
	if err != nil {
		if c.current != nil {
			return c.current, nil
		}
		return nil, err
	}
	all := append(append([]storage.Resource{}, c.configured...), stored...)
	fresh, err := policy.NewCatalogue(all)
	if err != nil {
		return nil, err
	}
	c.current, c.readAt = fresh, c.now()
	return fresh, nil
}

// DefaultScopes returns the scopes that a client should ask for first, over all
// resources. It is empty when they cannot be read.
func (s *Server) DefaultScopes(ctx context.Context) oauth.Scopes {
	catalog, err := s.catalog.load(ctx)
	if err != nil {
		return nil
	}
	return catalog.DefaultScopes()
}

// KnownScopes returns every scope that can be granted at all: those of every resource,
// and offline_access. It is empty when the resources cannot be read.
func (s *Server) KnownScopes(ctx context.Context) oauth.Scopes {
	catalog, err := s.catalog.load(ctx)
	if err != nil {
		return nil
	}
	out := oauth.Scopes{oauth.OfflineAccess}
	for _, r := range catalog.Resources() {
		out = out.Union(policy.ResourceScopes(r))
	}
	return out
}
