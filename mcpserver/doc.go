// Package mcpserver serves an MCP server of the official Go SDK with sign-in of its own, by one call:
// [Serve]. Accounts, consent and tokens are in the same process and on the same origin, as mcp-authd
// has them, with its pages, its API and its console.
//
// The scopes that a tool needs stand where the tool is declared, with the words by which people are asked:
// [gosdk.AddTool]. [gosdk.Serve] is the same for a server whose callers sign in at an authorization
// server elsewhere; it needs no database, and links none.
//
// # What is kept, and where
//
// The data directory has the database and the secret key, for the user of the process alone (0700, 0600), under
// the names that the commands of mcp-authd know: mcp-authd user add NAME --data DIR works while the program
// runs. Back both up: neither is of use without the other.
//
// # Everything else
//
// What has no field in [Options] is configured as for mcp-authd serve, by MCP_AUTHD_... variables or by a file
// (docs/operating/configuration.md): mail, passkeys, lifetimes, proxies, the audit log, traces. What is set in
// Options goes first, then the environment, then the file.
package mcpserver
