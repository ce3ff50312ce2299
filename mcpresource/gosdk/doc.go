// Package gosdk puts a server built with the official MCP Go SDK behind an
// [mcpresource.Guard]:
//
//	gosdk.Serve(ctx, tools, gosdk.ServeOptions{
//		Resource: "https://notes.example.com/mcp",
//		Issuer:   "https://auth.example.com",
//	})
//
// is the whole program. tools are those of the server with the scopes that each needs, declared by
// [AddTool]. Package mcpserver has the same call with an authorization server of its own. With a guard that
// was made by hand,
//
//	http.ListenAndServe(addr, gosdk.NewHandler(guard, server, nil))
//
// serves every revision of MCP from 2025-03-26 on one URL, sessions up to 2025-11-25 and
// the stateless requests of 2026-07-28, with the discovery documents beside them. [New]
// returns an [Adapter] for programs that want more than that: HTTP+SSE of 2024-11-05 on
// a path of its own ([Adapter.SSE]), an orderly end ([Adapter.Close]). [RunStdio] serves
// a client that has started the server, of either era.
//
// Where the SDK does what the specification says, nothing is added.
//
// # Who calls
//
// [Principal] is the verified caller of this very request, and so is
// [mcpresource.FromContext] of the context that a handler gets. What the SDK itself puts
// into that context is the token of the request that opened the session: in a session
// with tokens that are refreshed or narrowed, it is another person's. Tools never see the
// token. For a service at which the caller has an account they get its token from a
// [mcpresource.Broker]. When the person has to allow that first, return the error as it
// is: the client is told to open the page (URL mode elicitation), or shown the link as
// text if it knows no such thing.
//
// The scope of an operation is checked twice: by the guard on the strictly parsed
// envelope, which gives the right HTTP status, and again on the call that the SDK
// decoded, which is the boundary. A body that two JSON parsers read differently passes
// neither. Lists show what the caller may use, and are marked private to caches.
//
// What depends on the object only a handler can decide: [mcpresource.Guard.Require] asks
// for further scopes, [Own] for an owner, and [Refusal] makes of their errors what a
// client understands. A handler that works for long asks [mcpresource.Guard.Recheck]
// before each step that matters whether its caller is still good and still may.
//
// # What a client brings back
//
// The requestState of multi round-trip requests (2026-07-28) is sealed on its way out
// and opened on its way in: handlers see what they returned, clients cannot read it, and
// it is worth nothing to another caller, for another operation or other arguments, or
// after StateLife. It can be brought back more than once; before what must happen once, a
// handler asks [Once]. Several replicas need one key and one memory: see Options.State and
// Options.Spent.
//
// Events for resumption are kept under keys that begin with the caller, and are replayed only to
// that caller, whatever the store.
//
// # What tools are spared, and clients
//
// Arguments are checked against the tool's schema, also for tools added with
// Server.AddTool, for which the SDK checks nothing. A tool has ToolTimeout, which is
// answered for even when the tool does not stop; a caller has MaxCalls at once; a panic
// ends one call. Text in results loses terminal escape sequences and control characters,
// links of dangerous schemes are left out, and results of more than MaxResult bytes are
// not sent. Each has its option. Rates are up to the Limits of the guard, which can
// answer 429, and which count the calls of stdio too.
//
// The audit of the guard, Config.Calls, hears of each request once: who, by which
// application, what, with which outcome, for how long.
//
// # What else the SDK leaves open
//
// The endpoint also sees to these, each by the revision in question: a missing session
// id is 400; another protocol version than the session's is 400; batches belong to
// 2025-03-26, and never hold initialize or mix requests with responses; an id that is
// null or has a fraction is refused; a message of 2026-07-28 is a request or
// notification; a mirrored header comes once; a notification needs no Mcp-Method;
// methods of features that the server lacks are unknown; a missing resource is -32002 or
// -32602; bad arguments are an error or a result; a failure without a code is -32603; a
// method that is not known is a JSON-RPC error in sessions too; initialize is refused by a
// server without sessions, which names its revisions; a client that has opened its session and
// not said that it is ready is neither told of changes nor asked anything; one of 2026-07-28 is
// not pinged; an extension that a handler needs is asked for by [RequireExtension]. A parameter
// that looks like a secret and that clients copy into a header is logged. Errors in plain text
// become JSON-RPC errors. Sessions of an older revision see no member that a later one
// added: no ttlMs, no icons, no outputSchema where those are unknown.
//
// # Tasks
//
// The SDK has no tasks. Options.Tasks names the tools that can be called as tasks, for clients of
// 2025-11-25 and of the extension of 2026-07-28; tools need not know. A task belongs to person,
// application and grant, its caller is judged again as long as it runs, and its result is
// given to a caller who may call the tool now. A tool that returns questions has them asked in the way
// of the revision, and is called again with the answers; [Detach] makes a call a task after such
// questions. Every [mcpresource.TaskStore] but the one in memory keeps tasks when the process ends. An
// SDK that has the methods itself takes the place of this.
package gosdk
