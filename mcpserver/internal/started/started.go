// Package started gives package mcpservertest the authorization server that mcpserver.Serve has
// started, to create accounts in it.
package started

import (
	"context"

	"github.com/mcp-authd/mcp-authd/authserver"
)

type key struct{}

// With returns a context for mcpserver.Serve, which calls f when the server is about to accept
// requests.
func With(ctx context.Context, f func(*authserver.Server)) context.Context {
	return context.WithValue(ctx, key{}, f)
}

// Tell calls the function of With, if ctx has one.
func Tell(ctx context.Context, s *authserver.Server) {
	if f, ok := ctx.Value(key{}).(func(*authserver.Server)); ok {
		f(s)
	}
}
