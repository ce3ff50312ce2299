package gosdktest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/gosdk"
	"github.com/mcp-authd/mcp-authd/mcpresource/gosdk/gosdktest"
	"github.com/mcp-authd/mcp-authd/mcpresource/mcptest"
)

type caller struct {
	ByContext string `json:"by_context"`
	ByRequest string `json:"by_request"`
}

// whoami answers who calls, by both ways of asking.
func whoami(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, caller, error) {
	out := caller{"nobody", "nobody"}
	if p, ok := mcpresource.FromContext(ctx); ok {
		out.ByContext = p.Subject
	}
	if p, ok := gosdk.Principal(req); ok {
		out.ByRequest = p.Subject
	}
	return nil, out, nil
}

func newTools() *gosdk.Tools {
	server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1.0.0"}, nil)
	tools := gosdk.NewTools(server, gosdk.Scope{Name: "notes:read"})
	gosdk.AddTool(tools, &mcp.Tool{Name: "whoami"}, whoami)
	gosdk.AddTool(tools, &mcp.Tool{Name: "add_note"}, whoami, gosdk.Scope{Name: "notes:write"})
	return tools
}

// AU-03: tools and scopes over a connection.
func TestServe(t *testing.T) {
	srv := gosdktest.Serve(t, newTools())
	alice := gosdktest.Connect(t, srv.URL, srv.Client("alice", "notes:read"))
	res, err := alice.CallTool(t.Context(), &mcp.CallToolParams{Name: "whoami"})
	if err != nil {
		t.Fatal(err)
	}
	out, _ := res.StructuredContent.(map[string]any)
	if out["by_context"] != "alice" || out["by_request"] != "alice" {
		t.Errorf("got %v", out)
	}
	_, err = alice.CallTool(t.Context(), &mcp.CallToolParams{Name: "add_note"})
	if err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("without the scope: got %v", err)
	}
	list, err := alice.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 2 {
		t.Errorf("got %v, %v; want both tools, as gosdk.Serve lists them", list, err)
	}
}

// A test may change the configuration of the guard.
func TestServeAdjusted(t *testing.T) {
	srv := gosdktest.Serve(t, newTools(), func(c *mcpresource.Config) {
		c.Policy.(*mcpresource.Rules).Tools["whoami"] = []string{"notes:write"}
	})
	alice := gosdktest.Connect(t, srv.URL, srv.Client("alice", "notes:read"))
	if res, err := alice.CallTool(t.Context(), &mcp.CallToolParams{Name: "whoami"}); err == nil {
		t.Errorf("got %v", res)
	}
}

// AU-03: one tool by itself. Both ways of asking for the caller agree.
func TestRequest(t *testing.T) {
	for name, p := range map[string]*mcpresource.Principal{
		"alice": mcptest.Principal("alice", "notes:read"), "nobody": nil,
	} {
		ctx, req := gosdktest.Request(t, p)
		_, out, err := whoami(ctx, req, struct{}{})
		if want := (caller{name, name}); err != nil || out != want {
			t.Errorf("got %+v, %v; want %+v", out, err, want)
		}
	}
}
