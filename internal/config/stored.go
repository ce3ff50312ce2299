package config

import (
	"fmt"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// StoredResource returns a stored MCP server as if it were configured, with the defaults.
func StoredResource(r storage.Resource) *Resource {
	out := &Resource{
		URI: r.URI, Name: r.Name, Scopes: r.Scopes, Aliases: r.Aliases, Upstream: Upstream{URL: r.Upstream},
	}
	if r.DPoP == storage.DPoPRequired {
		out.DPoP = "required"
	}
	for _, t := range r.ToolRules {
		out.Tools = append(out.Tools, ToolRule{Name: t.Name, Scopes: t.Scopes, Deny: t.Deny, Direct: t.Direct})
	}
	return out
}

// CheckUpstream returns the first fault of the upstream or of a tool rule, or nil.
func (r *Resource) CheckUpstream() (err error) {
	r.validateUpstream(func(key, text string, args ...any) {
		if err == nil {
			err = fmt.Errorf(key+" "+text, args...)
		}
	}, "resource")
	return err
}
