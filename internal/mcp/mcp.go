// Package mcp holds the names of the Model Context Protocol on the wire: its revisions, the headers
// of Streamable HTTP, the members of _meta and the error codes. It imports nothing, so that both
// mcpresource with its adapters and the gateway can use it.
package mcp

// These are the revisions with their changes for servers. They are dates, so they compare as
// strings.
const (
	Rev20241105 = "2024-11-05" // the first: stdio, and HTTP with server-sent events
	Rev20250326 = "2025-03-26" // Streamable HTTP, authorization; the only revision with batches over HTTP
	Rev20250618 = "2025-06-18" // the version header, structured results, resource indicators
	Rev20251125 = "2025-11-25" // invalid input is a tool result; error URLElicitationRequired
	Rev20260728 = "2026-07-28" // no sessions and no GET streams; clients extend their scopes
)

// SessionRevisions returns the revisions with sessions, oldest first.
func SessionRevisions() []string {
	return []string{Rev20241105, Rev20250326, Rev20250618, Rev20251125}
}

// IsStateless reports whether a revision has no sessions. "" is a revision with sessions.
func IsStateless(revision string) bool { return revision >= Rev20260728 }

// These are the headers of Streamable HTTP in the canonical form of net/http.
const (
	HeaderVersion     = "Mcp-Protocol-Version" // since 2025-06-18
	HeaderSession     = "Mcp-Session-Id"       // up to 2025-11-25
	HeaderMethod      = "Mcp-Method"           // since 2026-07-28, like the next two
	HeaderName        = "Mcp-Name"
	HeaderParamPrefix = "Mcp-Param-"
	HeaderLastEvent   = "Last-Event-Id" // up to 2025-11-25
)

// ReplacedReader is the last event of a session stream whose reader was replaced. It makes the
// client wait before it reconnects, or two clients would replace each other endlessly (HTML Living
// Standard §9.2.6, "retry").
const ReplacedReader = "retry: 30000\n\n"

// These are the members of _meta (2026-07-28).
const (
	MetaVersion      = "io.modelcontextprotocol/protocolVersion"
	MetaClient       = "io.modelcontextprotocol/clientInfo"
	MetaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	MetaServer       = "io.modelcontextprotocol/serverInfo"
	MetaSubscription = "io.modelcontextprotocol/subscriptionId"
	MetaLogLevel     = "io.modelcontextprotocol/logLevel"
)

// These are the error codes of JSON-RPC 2.0 §5.1.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
)

// These are the error codes of MCP, and our code for other refusals.
const (
	CodeRefused              = -32000 // ours; outside the range that MCP allocates
	CodeResourceNotFound     = -32002 // up to 2025-11-25; CodeInvalidParams since (RS-78)
	CodeHeaderMismatch       = -32020 // since 2026-07-28, like the next two
	CodeMissingCapability    = -32021
	CodeUnsupportedVersion   = -32022
	CodeURLElicitationNeeded = -32042 // only 2025-11-25 (RS-79, RS-171)
)
