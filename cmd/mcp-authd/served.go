package main

import (
	"context"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

// originOf names the source of a resource, and the resource that overrides it.
func originOf(r admin.Resource) string {
	if r.OverriddenBy == "" {
		return r.From
	}
	return r.From + ", overridden by: " + r.OverriddenBy
}

// toolsOf describes the tools of a resource that need more than its first scope.
func toolsOf(r admin.Resource) string {
	var all []string
	for _, t := range r.Tools {
		need := strings.Join(t.Scopes, " ")
		if t.Denied {
			need = "denied"
		}
		if t.Direct {
			need += ", not for a sub-agent"
		}
		if t.Clearance != nil {
			need += ", and " + t.Clearance.String()
		}
		all = append(all, t.Name+": "+need)
	}
	return strings.Join(all, "; ")
}

// rememberServed stores the resource from the command line of protect in the database, because no
// file contains it.
func (a *app) rememberServed(ctx context.Context) error {
	return (&admin.Service{Store: a.store, Config: a.config}).RememberServed(ctx, "protect")
}

// listed returns all MCP servers with the tool rules of this server.
func (a *app) listed(ctx context.Context) ([]admin.Resource, error) {
	return (&admin.Service{Store: a.store, Config: a.config}).AllResources(ctx)
}
