// Package gateway puts MCP servers that do not speak OAuth, in any language, behind an
// [mcpresource.Guard].
//
// An [Upstream] is the handler behind the guard. It is a reverse proxy that passes streams through
// unchanged: it does not buffer, and no timeout ends a response that has begun. It changes what
// must change between two parties with different trust:
//
//   - The client's credentials stop at the guard. Authorization, cookies that the configuration
//     does not name, and access tokens in the query never reach the MCP server.
//   - The MCP server learns who calls from plain headers and from a signed token that it can
//     verify ([Identity]). Client headers with these names, in any spelling, are removed first.
//   - Headers about the server's own address or sign-in do not reach the client. Failures of
//     the MCP server become JSON-RPC errors.
//
// [Sites] serves several MCP servers by host and path. The sub-package stdio does for programs that
// speak MCP on standard input and output what Upstream does for HTTP servers.
package gateway
