package config

import (
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/storage"
)

// TestToolsListedTwice: of two rules about one tool the last would count alone, and open what the first one
// was meant to keep.
func TestToolsListedTwice(t *testing.T) {
	c := Default(func(string) string { return "" })
	c.Resources = []Resource{{
		URI: "https://mcp.example.com/mcp", Scopes: []storage.ScopeText{{Name: "mcp"}, {Name: "admin"}},
		Tools: []ToolRule{
			{Name: "drop", Scopes: []string{"admin"}}, {Name: "drop*", Scopes: []string{"admin"}},
			{Name: "drop", Scopes: []string{"mcp"}},
		},
		Upstream: Upstream{URL: "http://127.0.0.1:3000/mcp"},
	}}
	err := c.Validate()
	if err == nil || !strings.Contains(err.Error(), `resources[0].tools[2].name: "drop" is listed twice`) {
		t.Errorf("got %v", err)
	}
	c.Resources[0].Tools = c.Resources[0].Tools[:2]
	if err := c.Validate(); err != nil {
		t.Errorf("rules that differ: %v", err)
	}
}
