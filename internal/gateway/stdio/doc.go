// Package stdio serves programs that speak MCP on standard input and output as Streamable HTTP, in
// every revision. A server must be behind an [mcpresource.Guard].
//
// A [Server] starts the program once for each session of each caller, or, if it is Shared, once for
// all callers. It parses and rewrites the envelope of each message, so that program and gateway
// cannot read it differently. It passes method, params, result and error unchanged. It knows the
// meaning of only a few methods. initialize opens a session, and cancelled names a request. If
// callers share a process, subscriptions are kept apart and tasks are refused.
//
// # Which stream a message goes to
//
// On a pipe, only some messages of the program name the request that they belong to: responses, by
// their id, and progress notifications, by their token. Requests to the client and log messages go
// to the session's newest open request, because a program usually asks or logs because of a call.
// Everything else goes to the client's own stream. Each stream keeps sent messages for a while, for
// clients that resume with Last-Event-ID.
//
// # The stateless revision
//
// Requests of MCP 2026-07-28 use one process per caller, if the program supports that revision, and
// reach it unchanged. Other programs depend on client capabilities, which only initialize contains.
// Requests to such programs are refused, and clients that support older revisions open a session.
//
// # Processes
//
// Each process leads its own process group and has an environment built from an allow list. It is
// ended with its whole group when its session ends, when it has been idle for a while, or when the
// gateway stops. If a program ends by itself, its sessions end, and clients begin again. A program
// that ends soon after its start is restarted after a growing delay. The number of processes is
// limited per caller and in total.
//
// The server transport of the MCP Go SDK is not used. It hides the request that a message belongs
// to, and the revision of a request, behind unexported context keys. It also refuses methods that
// the SDK does not know.
package stdio
