package admin

import (
	"context"

	"github.com/mcp-authd/mcp-authd/policy"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Resources returns those of the configuration and of the store.
func (s *Service) Resources(ctx context.Context) ([]storage.Resource, error) {
	stored, err := s.Store.ListResources(ctx)
	return append(s.Config.StorageResources(), stored...), err
}

// catalogue is what tokens are issued for, and how many MCP servers that are.
func (s *Service) catalogue(ctx context.Context) (*policy.Catalogue, int, error) {
	known, err := s.Resources(ctx)
	if err != nil {
		return nil, 0, err
	}
	c, err := policy.NewCatalogue(append(known, s.Own...))
	return c, len(known), err
}
