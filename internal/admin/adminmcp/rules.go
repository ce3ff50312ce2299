package adminmcp

import (
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/admin/api"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Resource is the server at a URL as a resource of the authorization server. Its admin:write is given for
// as long as a proof counts as fresh, so that clients that know scopes alone let the person sign in again.
func Resource(uri, name string, fresh time.Duration) storage.Resource {
	r := api.Resource(uri, name)
	for i := range r.Scopes {
		if r.Scopes[i].Name == api.ScopeWrite {
			r.Scopes[i].MaxAge = storage.Age(fresh)
		}
	}
	return r
}

// Rules is what the guard before the server asks for. A tool that is not listed here counts as a change.
func Rules(fresh time.Duration) *mcpresource.Rules {
	r := api.Rules()
	r.Default = []string{api.ScopeWrite}
	r.Authentication = map[string]mcpresource.Authentication{api.ScopeWrite: {MaxAge: fresh}}
	r.Tools = map[string][]string{whyName: {}}
	for _, v := range admin.All() {
		if isTool(v) && !v.Spec().Changes() {
			r.Tools[toolName(v.Spec())] = []string{}
		}
	}
	return r
}

// mayChange reports whether the scopes of a caller let them call tools that change something.
func mayChange(scopes oauth.Scopes) bool { return scopes.Has(api.ScopeWrite) }
