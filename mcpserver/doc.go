// Package mcpserver serves an MCP server of the official Go SDK with built-in sign-in, through one
// call: [Serve]. Accounts, consent and tokens are in the same process and on the same origin, with
// the pages, API and console of mcp-authd.
//
// A tool's scopes are declared with the tool, together with the text of the consent page: see
// [gosdk.AddTool]. [gosdk.Serve] does the same for a server whose users sign in at a separate
// authorization server; it needs no database and links none.
//
// # Stored data
//
// The data directory holds the database and the secret key, readable only by the user of the
// process (0700, 0600). The mcp-authd commands use the same file names: mcp-authd user add NAME
// --data DIR works while the program runs. Back up both files: neither is usable without the other.
//
// # Other settings
//
// Settings without a field in [Options] are configured as for mcp-authd serve, with MCP_AUTHD_...
// variables or a file (docs/operating/configuration.md): mail, passkeys, lifetimes, proxies, the
// audit log, traces. Options take precedence over the environment, and the environment over the
// file.
package mcpserver
