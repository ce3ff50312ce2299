// Package adminmcp is the MCP face of package admin (OB-11): each operation is a tool, so that people can ask an
// assistant about their server, and have it do what they would do at the console.
//
// [Server] serves it at a URL of its own, behind a guard with [Rules]. A token with admin:read lists and
// calls the tools that read. Those that change something need admin:write, which this server gives for a
// short time after the person has proved who they are, and no longer (RFC 9470). Operations that show or
// take a secret are no tools: what an assistant reads stays in its context, and goes to who runs its model.
//
// What clients and people chose (names, user agents, what was refused) is data in the structured content of
// a result, cut and without characters that cannot be seen. No title, description or sentence of ours
// quotes it.
package adminmcp
