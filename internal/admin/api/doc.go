// Package api is the HTTP API of package admin. It serves each operation at its method and path
// below the root of the API, for our own tokens with the scopes admin:read and admin:write.
//
// [Server] serves it together with its OpenAPI 3.1 description, which is generated from the
// operations and their structs. Errors are problem documents (RFC 9457) whose type identifies them.
package api
