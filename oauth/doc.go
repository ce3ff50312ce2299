// Package oauth is the vocabulary that every other package shares: the protocol
// error, scopes, resource indicators, redirect URIs, PKCE and the
// WWW-Authenticate challenge. It holds rules, never state: each function is a
// pure function of its arguments and depends on the standard library alone, so
// the authorization server, the resource server and the bundled client decide
// every such question in the same way.
package oauth
