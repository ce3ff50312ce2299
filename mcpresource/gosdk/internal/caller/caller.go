// Package caller carries the verified caller of a request in the SDK's token information.
package caller

import (
	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// key is the key of the caller in auth.TokenInfo.Extra.
const key = "github.com/mcp-authd/mcp-authd/mcpresource.Principal"

// TokenInfo returns the token information of p for the SDK, which binds sessions to owner.
func TokenInfo(p *mcpresource.Principal, owner string) *auth.TokenInfo {
	return &auth.TokenInfo{
		Scopes: p.Scopes, Expiration: p.ExpiresAt, UserID: owner, Extra: map[string]any{key: p},
	}
}

// Of returns the caller in token information, which may be nil.
func Of(info *auth.TokenInfo) (*mcpresource.Principal, bool) {
	if info == nil {
		return nil, false
	}
	p, ok := info.Extra[key].(*mcpresource.Principal)
	return p, ok
}
