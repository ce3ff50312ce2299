// Package adminmcp is the MCP server of package admin (OB-11). Each operation is a tool, so that
// administrators can ask an assistant about their server and let it make the changes that they
// could make in the console.
//
// [Server] serves it at its own URL, behind a guard with [Rules]. A token with admin:read can list
// and call the tools that only read. Tools that change something need admin:write. This server
// grants it only for a short time after the user has authenticated (RFC 9470). Operations that show
// or take a secret are not tools, because everything that an assistant reads stays in its context
// and reaches the operator of its model.
//
// Text that clients and users chose (names, user agents, refused values) is data in the structured
// content of a result. It is truncated, and invisible characters are removed. Our titles,
// descriptions and sentences never quote it.
package adminmcp
