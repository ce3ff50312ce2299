// Package mcpresource makes any net/http MCP server an OAuth 2.1 protected resource.
//
//	v, err := mcpresource.Discover(ctx, "https://auth.example.com", nil)
//	g, err := mcpresource.New(mcpresource.Config{
//		Resource:             "https://mcp.example.com/mcp",
//		AuthorizationServers: []string{"https://auth.example.com"},
//		Validator:            v,
//		Policy: &mcpresource.Rules{
//			Base:  []string{"mcp"},
//			Tools: map[string][]string{"delete_*": {"files:write"}},
//		},
//	})
//	g.Register(mux, yourMCPHandler)
//
// A [Guard] publishes the protected resource metadata (RFC 9728), answers requests
// without a good token with the exact challenge that makes MCP clients sign in, and
// lets a request pass only when its token was issued by a named authorization server
// for this very resource, is in time, and has the scopes of the operation. Handlers
// find the caller with [FromContext]; the token itself never reaches them.
//
// # What a request goes through
//
// In this order, each step with one answer: Host and Origin (403), CORS preflight,
// the Authorization header (401, 400), the token (401; 503 when it cannot be judged),
// issuer, audience and times (401), the method (405), duplicated MCP headers (400), the
// size of the body (413) and its time (408), its envelope (400), the scopes of the
// operation (403 with all of them), the rate (429), the owner of the session (404), how
// many sessions the caller has (429). Then the Authorization header is removed and the
// handler runs, with a context that ends when the token does. It gets the body of a
// POST, and of no other method.
//
// The envelope is parsed strictly, because parsers differ: a body in which another
// JSON decoder could see another method or name is refused. A check behind the
// decoder of the MCP library in use, as in package gosdk, remains the boundary.
//
// The package depends on the standard library and go-jose, and on no MCP SDK.
package mcpresource
