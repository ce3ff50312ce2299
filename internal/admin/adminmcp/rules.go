package adminmcp

import (
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/admin/api"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Resource describes the server as a resource of the authorization server. Its admin:write is
// granted only while an authentication counts as recent. Clients that know only scopes thus let the
// user sign in again.
func Resource(uri, name string, fresh time.Duration) storage.Resource {
	r := api.Resource(uri, name)
	for i := range r.Scopes {
		if r.Scopes[i].Name == api.ScopeWrite {
			r.Scopes[i].MaxAge = storage.Age(fresh)
		}
	}
	return r
}

// Rules returns the rules of the guard in front of the server. An unlisted tool counts as a change.
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

// mayChange reports whether the scopes permit tools that change something.
func mayChange(scopes oauth.Scopes) bool { return scopes.Has(api.ScopeWrite) }
