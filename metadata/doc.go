// Package metadata holds the documents by which an MCP client finds its way
// without configuration: authorization server metadata (RFC 8414), the OpenID
// Connect Discovery copy of it, and protected resource metadata (RFC 9728). It
// knows where each of them lives for a given issuer or resource, and serves them
// the way that every known client accepts: application/json exactly, absent
// members omitted, readable from a browser, whatever MCP-Protocol-Version the
// request names.
package metadata
