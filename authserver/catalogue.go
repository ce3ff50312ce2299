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

	mu      sync.Mutex // guards what follows; held while it is read again
	current *policy.Catalogue
	askedAt time.Time // when it was read, or could not be
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
	if c.current != nil {
		if c.now().Sub(c.askedAt) < catalogueTTL {
			return c.current, nil
		}
		// Whoever waits behind this reading could do with what is known.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, catalogueTTL)
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

// ResourceScopes returns every scope that a token for resource can have, and false when no
// token can be issued for it. It is what mcpresource.Local compares a guard with.
func (s *Server) ResourceScopes(ctx context.Context, resource string) (scopes []string, known bool, err error) {
	catalog, err := s.catalog.load(ctx)
	if err != nil {
		return nil, false, err
	}
	uri, err := oauth.CanonicalResource(resource)
	if err != nil {
		return nil, false, err
	}
	r, known := catalog.Lookup(uri)
	return policy.ResourceScopes(r), known, nil
}
