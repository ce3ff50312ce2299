// Package mcp is the vocabulary of the Model Context Protocol on the wire: its revisions, the
// headers of Streamable HTTP, the members of _meta and the error codes, each once. It imports
// nothing, so that package mcpresource and its adapters may use it as well as the gateway.
package mcp

// The revisions, by the dates that are their names, so that they compare as strings, with what
// each changed for a server.
const (
	Rev20241105 = "2024-11-05" // the first: stdio, and HTTP with a stream of server-sent events
	Rev20250326 = "2025-03-26" // Streamable HTTP, authorization; the only one with batches over HTTP
	Rev20250618 = "2025-06-18" // the version header, structured results, resource indicators
	Rev20251125 = "2025-11-25" // bad input is a result of the tool; the error URLElicitationRequired
	Rev20260728 = "2026-07-28" // no sessions and no streams by GET; clients add to their scopes
)

// SessionRevisions returns those with sessions, the oldest first.
func SessionRevisions() []string {
	return []string{Rev20241105, Rev20250326, Rev20250618, Rev20251125}
}

// IsStateless reports whether a revision has no sessions. One that is not named has.
func IsStateless(revision string) bool { return revision >= Rev20260728 }

// The headers of Streamable HTTP as package net/http spells them.
const (
	HeaderVersion     = "Mcp-Protocol-Version" // since 2025-06-18
	HeaderSession     = "Mcp-Session-Id"       // up to 2025-11-25
	HeaderMethod      = "Mcp-Method"           // since 2026-07-28, like the next two
	HeaderName        = "Mcp-Name"
	HeaderParamPrefix = "Mcp-Param-"
	HeaderLastEvent   = "Last-Event-Id" // up to 2025-11-25
)

// ReplacedReader is the last event of a stream of a session whose reader another one has replaced. Its client should
// not come back at once, or the two would end each other (HTML Living Standard §9.2.6, "retry").
const ReplacedReader = "retry: 30000\n\n"

// The members of _meta (2026-07-28).
const (
	MetaVersion      = "io.modelcontextprotocol/protocolVersion"
	MetaClient       = "io.modelcontextprotocol/clientInfo"
	MetaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	MetaServer       = "io.modelcontextprotocol/serverInfo"
	MetaSubscription = "io.modelcontextprotocol/subscriptionId"
	MetaLogLevel     = "io.modelcontextprotocol/logLevel"
)

// The error codes of JSON-RPC 2.0 §5.1.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
)

// The error codes of MCP, and the one of refusals that it has no code for.
const (
	CodeRefused              = -32000 // ours; outside the range that MCP allocates
	CodeResourceNotFound     = -32002 // up to 2025-11-25; CodeInvalidParams since (RS-78)
	CodeHeaderMismatch       = -32020 // since 2026-07-28, like the next two
	CodeMissingCapability    = -32021
	CodeUnsupportedVersion   = -32022
	CodeURLElicitationNeeded = -32042 // 2025-11-25 alone (RS-79, RS-171)
)
