// Package metadata holds the documents that let an MCP client discover endpoints without
// configuration. They are authorization server metadata (RFC 8414), its OpenID Connect Discovery
// copy, and protected resource metadata (RFC 9728). It knows the location of each document for an
// issuer or resource. It serves them so that every known client accepts them: exactly
// application/json, empty members omitted, readable from a browser, for any MCP-Protocol-Version of
// the request.
package metadata
