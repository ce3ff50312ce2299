// Package thirdparty delegates sign-in to the identity providers that people already
// have (MCP 2025-03-26 authorization §2.10): it sends the browser there, learns who came
// back, keeps the provider's tokens in a vault, keeps them fresh, and ends what rests on
// them when the provider does. A resource server can be given the upstream token of the
// calling user (RFC 8693); it never gets one that was not meant for it, and no MCP token
// ever goes to a provider.
package thirdparty
