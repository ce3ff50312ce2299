package authserver

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// DefaultScopes returns the scopes that a client should request first, for all resources. It is
// empty if they cannot be read.
func (s *Server) DefaultScopes(ctx context.Context) oauth.Scopes {
	catalog, err := s.catalog.Load(ctx)
	if err != nil {
		return nil
	}
	return catalog.DefaultScopes()
}

// KnownScopes returns every scope that can be granted: the scopes of every resource, and
// offline_access. It is empty if the resources cannot be read.
func (s *Server) KnownScopes(ctx context.Context) oauth.Scopes {
	catalog, err := s.catalog.Load(ctx)
	if err != nil {
		return nil
	}
	out := oauth.Scopes{oauth.OfflineAccess}
	for _, r := range append(catalog.Resources(), catalog.Own()...) {
		out = out.Union(policy.ResourceScopes(r))
	}
	return out
}

// ResourceScopes returns every scope that a token for resource can have, and false if tokens cannot
// be issued for it. mcpresource.Local compares a guard with it.
func (s *Server) ResourceScopes(ctx context.Context, resource string) (scopes []string, known bool, err error) {
	catalog, err := s.catalog.Load(ctx)
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
