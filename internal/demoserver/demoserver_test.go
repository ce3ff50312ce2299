package demoserver

import (
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestClearNotes: RS-217. One tool of the demo needs the permission of its person, and touches no other's notes.
func TestClearNotes(t *testing.T) {
	for tool, want := range map[string]string{"clear_notes": oauth.ClearanceByPerson, "list_notes": "", "whoami": ""} {
		need := Rules().Require(mcpresource.Operation{Method: "tools/call", Name: tool})
		if need.Clearance.By != want {
			t.Errorf("%s: a clearance by %q, want %q", tool, need.Clearance.By, want)
		}
	}
	n := &notebook{pages: map[string][]string{"ann": {"milk", "bread", "oat milk"}, "bob": {"milk"}}}
	if got := n.forget("ann", "milk"); !slices.Equal(got, []string{"bread"}) {
		t.Errorf("got %q", got)
	}
	if got := n.forget("ann", ""); len(got) != 0 || len(n.pages["bob"]) != 1 {
		t.Errorf("got %q, and bob has %q", got, n.pages["bob"])
	}
	if _, _, err := n.clear(t.Context(), &mcp.CallToolRequest{}, whichNotes{}); err == nil {
		t.Error("it clears the notes of nobody")
	}
}
