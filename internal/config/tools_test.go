package config

import (
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// TestToolsListedTwice checks that two rules for one tool are refused. Otherwise only the last
// would apply, and could permit a call that the first restricts.
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

// TestToolClearance checks that errors in a tool call approval rule name its key.
func TestToolClearance(t *testing.T) {
	of := func(c ToolClearance) error {
		all := Default(func(string) string { return "" })
		all.Resources = []Resource{{
			URI: "https://mcp.example.com/mcp", Scopes: []storage.ScopeText{{Name: "mcp"}},
			Tools:    []ToolRule{{Name: "pay", Clearance: c}},
			Upstream: Upstream{URL: "http://127.0.0.1:3000/mcp"},
		}}
		return all.Validate()
	}
	good := ToolClearance{
		By: "other", Approvers: []string{"olga"}, ACR: "phr", MaxAge: Duration(time.Minute),
		When: "arguments.amount > 1",
	}
	if err := of(good); err != nil {
		t.Error(err)
	}
	for want, c := range map[string]ToolClearance{
		`clearance.by: "" is not one of person`:           {ACR: "phr"},
		`clearance.by: "me" is not one of person`:         {By: "me"},
		`clearance.approvers: are for by: other`:          {By: "person", Approvers: []string{"olga"}},
		`clearance.approvers[0]: "o o" is not the name`:   {By: "other", Approvers: []string{"o o"}},
		`clearance.approvers: are more than 32`:           {By: "other", Approvers: make([]string, 33)},
		`clearance.acr: "strong" is not one of`:           {By: "person", ACR: "strong"},
		`clearance.max_age`:                               {By: "person", MaxAge: Duration(48 * time.Hour)},
		`clearance.max_age: 1.5s is not in whole seconds`: {By: "person", MaxAge: Duration(1500e6)},
		`clearance.when: unknown name claims`:             {By: "person", When: "claims.x == 1"},
		`tools[0]: set scopes, or deny: true, or direct`:  {},
	} {
		if err := of(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("RS-217 %+v: got %v, want %s", c, err, want)
		}
	}
}
