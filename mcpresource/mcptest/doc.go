// Package mcptest tests MCP servers that package mcpresource protects, without an authorization
// server and a browser:
//
//	srv := mcptest.Serve(t, config, func(g *mcpresource.Guard) http.Handler {
//		return g.Handler(yourMCPHandler)
//	})
//	alice := srv.Client("alice", "notes:read")
//	resp, err := alice.Post(srv.URL, "application/json", body)
//
// [Serve] runs the server behind a real guard. The guard trusts an [Issuer] that gives a token to
// anyone, with any scopes. Its tokens can expire, be revoked, be for another server or be signed by
// a withdrawn key. To test one handler without a guard, use [Principal] and [Request].
//
// It works with any MCP library. Package gosdktest has shortcuts for the official Go SDK. Package
// mcpservertest runs mcp-authd itself, with its sign-in and consent pages.
package mcptest
