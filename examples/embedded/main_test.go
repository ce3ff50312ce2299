package main

import (
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource/gosdk/gosdktest"
	"github.com/mcp-authd/mcp-authd/mcpresource/mcptest"
	"github.com/mcp-authd/mcp-authd/mcpserver/mcpservertest"
)

// Scopes are checked, and users do not see each other's notes.
func TestNotes(t *testing.T) {
	srv := gosdktest.Serve(t, newTools())
	bob := gosdktest.Connect(t, srv.URL, srv.Client("bob", "notes:read"))
	milk := &mcp.CallToolParams{Name: "add_note", Arguments: note{"milk"}}
	if _, err := bob.CallTool(t.Context(), milk); err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("bob added a note without the scope: %v", err)
	}
	alice := gosdktest.Connect(t, srv.URL, srv.Client("alice", "notes:read", "notes:write"))
	if res, err := alice.CallTool(t.Context(), milk); err != nil || res.IsError {
		t.Errorf("alice added no note: %v, %v", res, err)
	}
	res, err := bob.CallTool(t.Context(), &mcp.CallToolParams{Name: "list_notes"})
	if err != nil || len(res.StructuredContent.(map[string]any)["notes"].([]any)) != 0 {
		t.Errorf("bob got %+v, %v", res, err)
	}
}

// One tool by itself.
func TestWhoami(t *testing.T) {
	ctx, req := gosdktest.Request(t, mcptest.Principal("alice", "notes:read"))
	if _, out, err := whoami(ctx, req, struct{}{}); err != nil || out.Subject != "alice" {
		t.Errorf("got %+v, %v", out, err)
	}
}

// A user signs in and approves on the pages of the program itself.
func TestSignIn(t *testing.T) {
	srv := mcpservertest.Serve(t, newTools())
	alice := srv.Person("alice")
	session := gosdktest.Connect(t, srv.URL, alice.Approve("notes:read"))
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "list_notes"}); err != nil {
		t.Error(err)
	}
	if !strings.Contains(alice.Pages(), read.Description) {
		t.Errorf("alice was not asked to let it %q:\n%s", read.Description, alice.Pages())
	}
}
