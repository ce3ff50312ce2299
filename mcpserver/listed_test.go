package mcpserver

import (
	"reflect"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// TestListed: RS-217. A list of resources shows the approvals of declared tools as well as their
// scopes.
func TestListed(t *testing.T) {
	got := listed(&mcpresource.Rules{
		Tools: map[string][]string{"add": {"write"}, "pay": {"write"}},
		Clearances: map[string]mcpresource.Clearance{
			"pay": {By: "other", Approvers: []string{"olga"}, Authentication: mcpresource.Authentication{
				ACR: []string{"phr"}, MaxAge: time.Minute,
			}},
			"wipe": {By: "person", When: func(mcpresource.Operation) bool { return true }},
		},
	})
	want := []config.ToolRule{
		{Name: "add", Scopes: []string{"write"}},
		{Name: "pay", Scopes: []string{"write"}, Clearance: config.ToolClearance{
			By: "other", Approvers: []string{"olga"}, ACR: "phr", MaxAge: config.Duration(time.Minute),
		}},
		{Name: "wipe", Clearance: config.ToolClearance{By: "person", When: "the program says so"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
