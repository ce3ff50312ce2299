// Package gosdktest tests MCP servers built with the official Go SDK and package gosdk:
//
//	srv := gosdktest.Serve(t, tools)
//	alice := gosdktest.Connect(t, srv.URL, srv.Client("alice", "notes:read"))
//	res, err := alice.CallTool(t.Context(), &mcp.CallToolParams{Name: "list_notes"})
//
// [Serve] runs the tools behind a real guard, which trusts an issuer of package mcptest. [Request]
// tests one tool by itself.
package gosdktest

import (
	"context"
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/gosdk"
	"github.com/mcp-authd/mcp-authd/mcpresource/gosdk/internal/caller"
	"github.com/mcp-authd/mcp-authd/mcpresource/mcptest"
)

// Serve serves tools until the test ends, with the options of gosdk.Serve and an issuer for tests.
// adjust may change the configuration of the guard, such as Clearances, which tools with a Clearance
// need. For other options of the adapter, use [mcptest.Serve] with [gosdk.NewHandler].
func Serve(t testing.TB, tools *gosdk.Tools, adjust ...func(*mcpresource.Config)) *mcptest.Server {
	t.Helper()
	var c mcpresource.Config
	if err := tools.Configure(&c); err != nil {
		t.Fatal(err)
	}
	for _, f := range adjust {
		f(&c)
	}
	return mcptest.Serve(t, c, func(g *mcpresource.Guard) http.Handler {
		adapter := gosdk.New(g, tools.Server(), &gosdk.Options{ShowAll: true})
		t.Cleanup(func() {
			ctx, cancel := context.WithCancel(context.Background())
			cancel() // tools that still run are cancelled
			_ = adapter.Close(ctx)
		})
		return adapter.Handler()
	})
}

// Connect connects an MCP client to the server at url, and disconnects it when the test ends. c is
// the client's sign-in, such as srv.Client("alice", "notes:read").
func Connect(t testing.TB, url string, c *http.Client) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "gosdktest", Version: "1.0.0"}, nil)
	session, err := client.Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: url, HTTPClient: c, MaxRetries: -1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() }) // the server may have ended the session
	return session
}

// Request returns the context and the request of a call by p, to test a tool by itself:
//
//	ctx, req := gosdktest.Request(t, mcptest.Principal("alice", "notes:read"))
//	_, out, err := listNotes(ctx, req, listArgs{})
//
// Both mcpresource.FromContext(ctx) and gosdk.Principal(req) return p. With a nil p, there is no
// caller. Outside of tests only a guard can name a caller.
func Request(t testing.TB, p *mcpresource.Principal) (context.Context, *mcp.CallToolRequest) {
	req := &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{}, Extra: &mcp.RequestExtra{}}
	if p != nil {
		req.Extra.TokenInfo = caller.TokenInfo(p, p.Person())
	}
	return mcpresource.NewContext(t.Context(), p), req
}
