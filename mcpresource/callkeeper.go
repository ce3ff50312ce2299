package mcpresource

import (
	"context"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// CallKeeper keeps calls of tools for the audit log of an authorization server: authserver.Server does in its
// own process, and a Reporter in another. It may not block.
type CallKeeper interface {
	Called(ctx context.Context, c oauth.Call)
}

// KeepCalls returns a function for Config.Calls that has a CallKeeper keep the calls of tools whose caller is
// known, with the digest of their arguments and never the arguments, and passes all calls on to others, such as
// LogCalls.
func KeepCalls(to CallKeeper, others ...func(context.Context, CallEvent)) func(context.Context, CallEvent) {
	return func(ctx context.Context, e CallEvent) {
		if who := e.Principal; e.Method == "tools/call" && who != nil && who.at != nil {
			to.Called(ctx, oauth.Call{
				At:        e.Time,
				Resource:  who.at.resource,
				Tool:      e.Name,
				Outcome:   string(e.Outcome),
				Digest:    e.Digest,
				Clearance: e.Clearance,
				Issuer:    who.Issuer,
				TokenID:   who.TokenID,
				GrantID:   who.GrantID(),
				ClientID:  who.ClientID,
				Subject:   who.Subject,
				Address:   host(e.RemoteAddr),
			})
		}
		for _, take := range others {
			take(ctx, e)
		}
	}
}
