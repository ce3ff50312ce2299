// Package oauth defines the vocabulary that all other packages share: the protocol error, scopes,
// resource indicators, redirect URIs, PKCE and the WWW-Authenticate challenge. It holds no state:
// each function is a pure function of its arguments and needs only the standard library. The
// authorization server, the resource server and the bundled client therefore apply the same rules.
package oauth
