package assembly

import (
	"context"
	"net/http"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/taskstore"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// Inside returns the configuration of a guard for an MCP server that is part of this program, at a
// configured resource. The server then leaves the memory limit as the program has set it. Call
// Inside before Serve.
func (s *Server) Inside(ctx context.Context, r *config.Resource) (mcpresource.Config, error) {
	stored, err := s.parts.Store.ListResources(ctx)
	if err != nil {
		return mcpresource.Config{}, err
	}
	s.inside = true
	all := common{
		bodies: s.parts.bodies(), calls: s.calls, first: newFirstCalls(s.Auth.Issuer(), s.parts.Now),
	}
	c, err := s.parts.guardConfig(s.Auth, r, s.parts.sharesOrigin(r, stored), all)
	c.Validator = mcpresource.Local(s.Auth) // a revoked token ends at once
	return c, err
}

// Tasks returns the task store for an MCP server that is part of this program.
func Tasks(store storage.Tasks, resource string, keys [][]byte) (mcpresource.TaskStore, error) {
	ring, err := secrets.NewRing(keys...)
	if err != nil {
		return nil, err
	}
	return taskstore.New(store, resource, ring, nil)
}

// Beside returns a handler that serves mux first, and then the server.
func (s *Server) Beside(mux *http.ServeMux) http.Handler { return s.traced(home{mux, s.sites}) }
