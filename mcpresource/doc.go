// Package mcpresource makes any net/http MCP server an OAuth 2.1 protected resource.
//
//	v, err := mcpresource.Discover(ctx, "https://auth.example.com", nil)
//	if err != nil {
//		log.Fatal(err)
//	}
//	g, err := mcpresource.New(mcpresource.Config{
//		Resource:             "https://mcp.example.com/mcp",
//		AuthorizationServers: []string{"https://auth.example.com"},
//		Validator:            v,
//		Policy:               &mcpresource.Rules{Base: []string{"mcp"}},
//	})
//	if err != nil {
//		log.Fatal(err)
//	}
//	g.Register(mux, yourMCPHandler)
//
// A [Guard] publishes the protected resource metadata (RFC 9728). A request passes only if its
// token was issued by a configured authorization server for this resource, has not expired, and has
// the scopes of the operation. Other requests get the challenge that makes MCP clients sign in.
// Handlers get the caller with [FromContext]; the token itself never reaches them.
//
// [Rules] states who may do what, [Limits] how often, and an [Outcome] how a request ended. The
// package needs the standard library, go-jose and golang.org/x/sync, and no MCP SDK.
package mcpresource
