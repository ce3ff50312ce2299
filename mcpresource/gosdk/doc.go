// Package gosdk puts a server built with the official MCP Go SDK behind an
// [mcpresource.Guard]:
//
//	gosdk.Serve(ctx, tools, gosdk.ServeOptions{
//		Resource: "https://notes.example.com/mcp",
//		Issuer:   "https://auth.example.com",
//	})
//
// is the whole program. tools are the tools of the server with the scopes that each needs, declared
// with [AddTool]. Package mcpserver has the same call with a built-in authorization server. With a
// guard created by hand,
//
//	http.ListenAndServe(addr, gosdk.NewHandler(guard, server, nil))
//
// serves every revision of MCP from 2025-03-26 on one URL: sessions up to 2025-11-25 and the
// stateless requests of 2026-07-28, together with the discovery documents. [New] returns an
// [Adapter] for further needs: HTTP+SSE of 2024-11-05 on a separate path ([Adapter.SSE]), or an
// orderly end ([Adapter.Close]). [RunStdio] serves a client that started the server, of either era.
//
// The adapter adds nothing where the SDK follows the specification.
//
// # The caller
//
// [Principal] returns the verified caller of the current request. So does [mcpresource.FromContext]
// with the context of a handler. The SDK itself puts the token of the request that opened the
// session into that context. If tokens in a session are refreshed or reduced, that token is
// outdated, and it may belong to another user. Tools never see the token. For a service where the
// caller has an account, they get a token from a [mcpresource.Broker]. If the user must allow that
// first, return the error unchanged: the client is asked to open the page (URL mode elicitation),
// or shows the link as text.
//
// The scope of an operation is checked twice. The guard checks the strictly parsed envelope, which
// gives the right HTTP status. The adapter checks the call that the SDK decoded, which is the
// security boundary. A body that two JSON parsers read differently passes neither. Lists contain
// only entries for the caller, and are marked private for caches.
//
// Only a handler can make decisions that depend on the object. [mcpresource.Guard.Require] requires
// further scopes, [Own] checks the owner, and [Refusal] converts their errors for the client. A
// long-running handler calls [mcpresource.Guard.Recheck] before each important step, to check that
// its caller is still valid and still allowed.
//
// # State returned by clients
//
// The requestState of multi round-trip requests (2026-07-28) is sealed when it is sent and opened
// when it returns. Handlers see their own value, and clients cannot read it. It is invalid for
// another caller, another operation or other arguments, and after StateLife. It can be returned
// more than once: before an effect that must happen once, a handler calls [Once]. Several replicas
// need a shared key and store: see Options.State and Options.Spent.
//
// Events for resumption are stored under keys that begin with the caller, and are replayed only to
// that caller, with any store.
//
// # Protection of tools and clients
//
// Arguments are checked against the tool's schema, also for tools added with Server.AddTool, which
// the SDK does not check. After ToolTimeout the client gets an answer even if the tool continues. A
// caller can run MaxCalls at once. A panic ends only its call. Terminal escape sequences, control
// characters and links with dangerous schemes are removed from results. Results of more than
// MaxResult bytes are not sent. Each has an option. Rates are limited by the Limits of the guard,
// which answers 429, and which also counts calls over stdio.
//
// The audit of the guard, Config.Calls, receives each request once: caller, application, operation,
// outcome and duration.
//
// # Further differences from the SDK
//
// The endpoint also applies these rules of each revision:
//
//   - A missing session id gets 400, and so does another protocol version than the session's.
//   - Batches exist only in 2025-03-26. They never contain initialize, and never mix requests with
//     responses.
//   - An id that is null or has a fraction is rejected.
//   - A message of 2026-07-28 is a request or notification. A mirrored header occurs once. A
//     notification needs no Mcp-Method. Clients of this revision are not pinged.
//   - Methods of features that the server lacks are unknown.
//   - An unknown method is a JSON-RPC error, also in sessions.
//   - A missing resource is -32002 or -32602. Invalid arguments are an error or a result. A failure
//     without a code is -32603.
//   - A server without sessions refuses initialize and names its revisions.
//   - A client that opened a session gets no requests and no notifications of changes until it has
//     sent notifications/initialized.
//   - [RequireExtension] requests an extension that a handler needs.
//   - A parameter that looks like a secret and that clients copy into a header is logged.
//   - Errors in plain text become JSON-RPC errors.
//   - Sessions of an older revision get no members of later ones, such as ttlMs, icons or
//     outputSchema.
//
// # Tasks
//
// The SDK has no tasks. Options.Tasks lists the tools that can be called as tasks, for clients of
// 2025-11-25 and of the extension of 2026-07-28; the tools themselves need no change. A task
// belongs to a user, application and grant. Its caller is checked again while it runs, and its
// result is given to a caller who may call the tool at that time. If a tool returns questions, they
// are asked in the way of the revision, and the tool is called again with the answers. [Detach]
// turns a call into a task after such questions. All provided stores except the one in memory keep
// tasks when the process ends. If an SDK implements the methods itself, they replace these.
package gosdk
