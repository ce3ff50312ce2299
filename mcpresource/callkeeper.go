package mcpresource

import (
	"context"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/logged"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// CallKeeper stores tool calls in the audit log of an authorization server. It must not block.
// authserver.Server is one in its own process, and Reporter one in another.
type CallKeeper interface {
	Called(ctx context.Context, c oauth.Call)
}

// KeepCalls returns a function for Config.Calls. It passes tool calls with a known caller to a
// CallKeeper, with a digest of their arguments instead of the arguments. It passes all calls to
// others, such as LogCalls.
func KeepCalls(to CallKeeper, others ...func(context.Context, CallEvent)) func(context.Context, CallEvent) {
	return func(ctx context.Context, e CallEvent) {
		if who, at := e.Principal, addressOf(e.Principal); e.Method == "tools/call" && at != nil {
			to.Called(ctx, oauth.Call{
				At:        e.Time,
				Resource:  at.resource,
				Tool:      e.Name,
				Outcome:   string(e.Outcome),
				Digest:    e.Digest,
				Clearance: e.Clearance,
				Issuer:    who.Issuer,
				TokenID:   who.TokenID,
				GrantID:   who.GrantID(),
				ClientID:  who.ClientID,
				Subject:   who.Subject,
				Address:   logged.Host(e.RemoteAddr),
			})
		}
		for _, take := range others {
			take(ctx, e)
		}
	}
}
