// Package gateway puts MCP servers that speak no OAuth, in any language, behind an
// [mcpresource.Guard].
//
// An [Upstream] is the handler that the guard lets requests through to. It is a reverse
// proxy that leaves streams as they are (nothing is held back, and no timeout ends what
// has begun), and changes what has to change between two parties of different trust:
//
//   - The client's credentials end at the guard: Authorization, cookies that were not
//     named, and access tokens in the query never reach the MCP server.
//   - The MCP server is told who calls, in plain headers and in a signed token that it
//     can verify ([Identity]). What a client sends under these names, however it spells
//     them, is removed first.
//   - What the MCP server says about where it lives, or about how to sign in to it, does
//     not reach the client: its failures are told in a JSON-RPC error.
//
// [Sites] brings several MCP servers together by host and path. Package stdio, below
// this one, does for programs that speak MCP on their standard input and output what
// Upstream does for those that listen.
package gateway
