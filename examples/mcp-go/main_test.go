package main

import (
	"net/http"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/mcptest"
)

// The guard knows the caller, and refuses calls beyond the caller's scopes.
func TestNotes(t *testing.T) {
	srv := mcptest.Serve(t, mcpresource.Config{Policy: policy}, func(g *mcpresource.Guard) http.Handler {
		return g.Handler(newHandler(g))
	})
	alice, err := client.NewStreamableHttpClient(srv.URL, transport.WithHTTPBasicClient(srv.Client("alice", "notes:read")))
	if err != nil {
		t.Fatal(err)
	}
	defer alice.Close()
	begin := mcp.InitializeRequest{Params: mcp.InitializeParams{ProtocolVersion: mcp.LATEST_PROTOCOL_VERSION}}
	if _, err := alice.Initialize(t.Context(), begin); err != nil {
		t.Fatal(err)
	}
	res, err := alice.CallTool(t.Context(), mcp.CallToolRequest{Params: mcp.CallToolParams{Name: "whoami"}})
	if err != nil || res.Content[0].(mcp.TextContent).Text != "alice by mcptest" {
		t.Errorf("got %+v, %v", res, err)
	}
	res, err = alice.CallTool(t.Context(), mcp.CallToolRequest{Params: mcp.CallToolParams{Name: "add_note"}})
	if err == nil {
		t.Errorf("alice added a note without the scope: %+v", res)
	}
}
