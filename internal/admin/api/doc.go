// Package api is the HTTP face of package admin: each operation at its method and path below the root of
// the API, for our own tokens with the scopes admin:read and admin:write.
//
// [Server] serves it, with its description (OpenAPI 3.1), which is made from the operations and their
// structs. What goes wrong is a problem document (RFC 9457) whose type says what it is.
package api
