package e2e

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/gosdk"
)

// guardWhoami serves an MCP server with the tool whoami, behind a guard that verifies tokens itself
// with the authorization server's keys and status lists. It sets Validator and Rules of c.
func guardWhoami(t *testing.T, mux *http.ServeMux, c mcpresource.Config) {
	t.Helper()
	v, err := mcpresource.NewJWTValidator(mcpresource.JWTConfig{
		Issuer: c.AuthorizationServers[0], RequireStatus: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Validator, c.Policy = v, &mcpresource.Rules{Base: []string{"mcp"}}
	guard, err := mcpresource.New(c)
	if err != nil {
		t.Fatal(err)
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "guarded", Version: "1"}, nil)
	type caller struct {
		Subject string `json:"user"`
		Client  string `json:"client"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "whoami"},
		func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, caller, error) {
			p, ok := gosdk.Principal(r)
			if !ok {
				return nil, caller{}, errors.New("no caller")
			}
			return nil, caller{p.Subject, p.ClientID}, nil
		})
	guard.Register(mux, gosdk.Unguarded(guard, s, &gosdk.Options{ShowAll: true}))
}
