package gosdk

import (
	"context"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/gosdk/internal/caller"
)

// heldKey marks a principal whose token was presented once instead of with this request, as for a
// stdio server.
const heldKey = "github.com/mcp-authd/mcp-authd/mcpresource.held"

// bridge passes the caller that the guard verified to the SDK. The SDK takes token information only
// from its own bearer middleware. So bridge runs that middleware with a placeholder token, and
// removes the placeholder before the SDK reads the headers. It also makes the SDK bind sessions to
// their owner according to the guard.
func (a *Adapter) bridge(next http.Handler) http.Handler {
	verify := func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		p, ok := mcpresource.FromContext(ctx)
		if !ok {
			return nil, auth.ErrInvalidToken
		}
		info := caller.TokenInfo(p, a.guard.Owner(p))
		if m, ok := ctx.Value(carriedContext{}).(taskMembers); ok {
			info = carrying(info, m)
		}
		return info, nil
	}
	bare := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Authorization")
		next.ServeHTTP(w, r)
	})
	// The guard has checked the times already, with its own clock skew.
	bearer := auth.RequireBearerToken(verify,
		&auth.RequireBearerTokenOptions{AllowMissingExpiration: true, ClockSkew: time.Hour})(bare)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := mcpresource.FromContext(r.Context()); !ok {
			bare.ServeHTTP(w, r) // a public method; receive rejects all others
			return
		}
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer verified")
		bearer.ServeHTTP(w, r)
	})
}

// Principal returns the verified caller of a request, in tools, prompts, resources and middleware.
// Inside a session it is still the caller of this request. To test a tool by itself, make its
// request with package gosdktest.
func Principal(r mcp.Request) (*mcpresource.Principal, bool) {
	extra := r.GetExtra()
	if extra == nil {
		return nil, false
	}
	return caller.Of(extra.TokenInfo)
}

// held reports whether the caller must be verified again before this request.
func held(r mcp.Request) bool {
	extra := r.GetExtra()
	return extra != nil && extra.TokenInfo != nil && extra.TokenInfo.Extra[heldKey] != nil
}
