// Package gosdk puts a server built with the official MCP Go SDK behind an
// [mcpresource.Guard]:
//
//	http.ListenAndServe(addr, gosdk.NewHandler(guard, server, nil))
//
// serves both protocol eras on one URL, sessions up to 2025-11-25 and the stateless
// requests of 2026-07-28, with the discovery documents beside them. It adds what the
// SDK leaves to its user:
//
//   - The scope of an operation is checked twice: by the guard on the strictly parsed
//     envelope, which gives the right HTTP status, and by [Middleware] on the call that
//     the SDK decoded, which is the boundary. A body that two JSON parsers read
//     differently passes neither.
//   - Lists show what the caller may use, and are marked private to caches.
//   - [Principal] is the caller of this very request. The context of a tool in a
//     session carries the identity of the request that opened the session; do not use it.
//   - Tools never see the token. For a service at which the caller has an account they
//     get its token from a [mcpresource.Broker]. When the person has to allow that first,
//     return the error as it is: the client is told to open the page (URL mode
//     elicitation), or shown the link as text if it knows no such thing.
package gosdk
