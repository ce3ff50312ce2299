package main

import (
	"context"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

// originOf says where a resource is from, and whether another one overrides it.
func originOf(r admin.Resource) string {
	if r.OverriddenBy == "" {
		return r.From
	}
	return r.From + ", overridden by: " + r.OverriddenBy
}

// toolsOf are the tools of a resource that need more than its first scope, with what they need.
func toolsOf(r admin.Resource) string {
	var all []string
	for _, t := range r.Tools {
		need := strings.Join(t.Scopes, " ")
		if t.Denied {
			need = "denied"
		}
		if t.Clearance != nil {
			need += ", and " + t.Clearance.String()
		}
		all = append(all, t.Name+": "+need)
	}
	return strings.Join(all, "; ")
}

// rememberServed has the database remember what the command line of protect says: no file does.
func (a *app) rememberServed(ctx context.Context) error {
	return (&admin.Service{Store: a.store, Config: a.config}).RememberServed(ctx, "protect")
}

// listed returns all MCP servers with what their tools need, as far as this server decides it.
func (a *app) listed(ctx context.Context) ([]admin.Resource, error) {
	return (&admin.Service{Store: a.store, Config: a.config}).AllResources(ctx)
}
