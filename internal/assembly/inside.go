package assembly

import (
	"context"
	"net/http"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/taskstore"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Inside is the configuration of a guard for an MCP server that is part of this program, at a resource of the
// configuration. The program has other things to do, so that the server leaves memory as the program has
// set it. Call it before Serve.
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
	c.Validator = mcpresource.Local(s.Auth) // a token that is revoked ends at once
	return c, err
}

// Tasks is the store of the tasks of an MCP server that is part of this program.
func Tasks(store storage.Tasks, resource string, keys [][]byte) (mcpresource.TaskStore, error) {
	ring, err := secrets.NewRing(keys...)
	if err != nil {
		return nil, err
	}
	return taskstore.New(store, resource, ring, nil)
}

// Beside returns what serves the server and, before it, what is on a mux.
func (s *Server) Beside(mux *http.ServeMux) http.Handler { return s.traced(home{mux, s.home}) }
