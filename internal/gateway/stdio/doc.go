// Package stdio serves MCP servers that speak on their standard input and output as
// Streamable HTTP, in every revision, to stand behind an [mcpresource.Guard].
//
// A [Server] starts the program once for each session of each caller, or, when it is Shared, once
// for all callers. Messages pass as they are: the envelope is read and written again, so that
// program and gateway cannot read two different things out of it, and method, params, result and
// error are handed on, whatever they are. Nothing here knows what a method does, but for these:
// initialize opens a session, cancelled names a request, and, of callers who share a process,
// subscriptions are kept apart and tasks are refused.
//
// # Which stream a message goes to
//
// On a pipe nothing says to which request a message of the program belongs. A response
// does, by its id; a progress notification does, by its token. Requests to the client and
// log messages go to the youngest open request of the session, because a program that
// asks something mostly asks it for the sake of a call, and everything else to the
// client's own stream. Each stream keeps what it sent for a while, for clients that come
// back with Last-Event-ID.
//
// # The stateless revision
//
// For requests of MCP 2026-07-28 there is one process for each caller, of a program that
// knows the revision, which gets them as they are. What any other can do depends on what
// its client told it in initialize, so such requests are refused, and clients that know
// older revisions too open a session.
//
// # Processes
//
// Each is the head of a process group of its own, with an environment made of an allow
// list, and is ended with its whole group: when its session ends, when it was not used
// for a while, when the gateway stops. A program that ends by itself takes its sessions
// with it, which tells clients to begin again; one that ends at once is started again only
// after a while that grows. Their number is bounded, for each caller and in all.
//
// The server transport of the MCP Go SDK is not used: which request a message belongs
// to and which revision a request is of are behind unexported context keys there, and
// methods that the SDK does not know are refused.
package stdio
