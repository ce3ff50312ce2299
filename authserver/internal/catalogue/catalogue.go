// Package catalogue keeps the protected resources at hand, the configured ones and those in
// the store, and finds the one that a request means.
package catalogue

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
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
func New(
	ctx context.Context, configured []storage.Resource, store storage.Resources, now func() time.Time,
) (*Catalogue, error) {
	c := &Catalogue{configured: configured, store: store, now: now}
	_, err := c.Load(ctx)
	return c, err
}

// Load returns the catalogue. When the store fails, an earlier one is served on:
// resources change seldom, and a request that needs the store will see its error.
func (c *Catalogue) Load(ctx context.Context) (*policy.Catalogue, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != nil {
		if c.now().Sub(c.askedAt) < TTL {
			return c.current, nil
		}
		// Requests that wait for this reading could do with what is known.
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

// Resolve returns the resource that the resource parameters of a request mean (RFC 8707 §2),
// and notes which were asked for. An *oauth.Error.
func (c *Catalogue) Resolve(ctx context.Context, requested []string) (policy.Resolution, error) {
	current, err := c.Load(ctx)
	if err != nil {
		return policy.Resolution{}, refusal.Unavailable(err)
	}
	audit.Note(ctx, slog.String("resource", strings.Join(requested, " "))) // as it was asked for
	resource, err := current.Resolve(requested)
	if err != nil {
		return policy.Resolution{}, err
	}
	audit.Note(ctx, slog.String("resource", resource.URI), slog.String("resource_match", resource.Match))
	return resource, nil
}

// Named returns the canonical resource that a token request names, "" when it
// names none (RFC 8707 §2.2, AS-108). An *oauth.Error.
func (c *Catalogue) Named(ctx context.Context, requested []string) (string, error) {
	if len(requested) == 0 {
		return "", nil
	}
	resource, err := c.Resolve(ctx, requested)
	return resource.URI, err
}

// Lookup returns a resource by its canonical URI, and false when there is none. An
// *oauth.Error.
func (c *Catalogue) Lookup(ctx context.Context, uri string) (storage.Resource, bool, error) {
	current, err := c.Load(ctx)
	if err != nil {
		return storage.Resource{}, false, refusal.Unavailable(err)
	}
	resource, ok := current.Lookup(uri)
	return resource, ok, nil
}

// DemandProofs is that of the policy.Catalogue. An *oauth.Error.
func (c *Catalogue) DemandProofs(ctx context.Context) (some, all bool, err error) {
	current, err := c.Load(ctx)
	if err != nil {
		return false, false, refusal.Unavailable(err)
	}
	some, all = current.DemandProofs()
	return some, all, nil
}
