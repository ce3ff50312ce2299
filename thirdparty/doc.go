// Package thirdparty delegates sign-in to existing identity providers (MCP 2025-03-26 authorization
// §2.10). It sends the browser to a provider, learns who signed in, stores the provider's tokens in
// a vault and renews them. When the provider ends a session, everything that depends on it ends
// here. A resource server can get the upstream token of the calling user (RFC 8693). It never gets
// a token that was not meant for it, and no MCP token ever goes to a provider.
//
// # Words
//
// A provider is a server of another organisation: Google, or a company's Keycloak. A connector is
// the local configuration of sign-in at one provider: client credentials, rules, and which resource
// servers may get its tokens. Its ID is its name everywhere: in the redirect URI, an identity and
// an audit event ("connector"). Outside this package it is also the ID of a delegation.Provider and
// the audience of a token exchange.
//
// An upstream session (storage.Upstream, "ups_...") is one user's session at a provider, with its
// tokens and claims. An identity (storage.Identity) links an account there, by connector and
// subject, to a user here.
//
// Each sign-in is one authorization code flow with a provider: Depart builds the authorization
// request, Return processes the authorization response. The purpose is to sign in, to link another
// account, or to extend the scopes of the tokens. Package delegation has the types that authserver
// and this package share.
//
// # One sign-in, from edge to store
//
// Package authserver talks to the user, and calls Depart and Return. Nothing here sees an
// http.ResponseWriter, except the one endpoint that providers call directly.
//
//	delegation.go   New, and the messages for users about failures
//	depart.go       the authorization request: state, binding, nonce, PKCE; stored sealed
//	return.go       the authorization response: taken once, code redeemed, rules applied
//	identity.go     links between accounts at providers and users
//	vault.go        the sealed form of tokens; reseal.go: under another master key;
//	                settle.go: conversion of rows from earlier versions
//	check.go        checks a session before a token that depends on it is accepted
//	inquire.go      the question itself: one replica asks, and stores the answer first
//	outage.go       handles a question without an answer
//	renew.go        new tokens, and their owner
//	end.go          why sessions end, and what to revoke with them
//	run.go          the same question in the background, for sessions that are due
//	backchannel.go  OpenID Connect Back-Channel Logout 1.0
//	broker.go       RFC 8693: a token of the provider for a resource server
//	probe.go        findings for the doctor command
//
// A connector is built once:
//
//	config.go, types.go   the configuration, and the types of connectors
//	validate.go           defaults and validation
//	connector.go          a Connector with its defaults, compiled rules and provider
//	rules.go              who may sign in, and with which scopes
//
// The three packages below it know nothing of sessions and stores. internal/provider sends requests
// to providers, and is the only one that does. internal/rules evaluates rules over claims.
// internal/claim reads claims.
//
// # Binding
//
// Neither the state nor the cookie of a request is useful alone. The stored request is found by a
// digest of both, is valid for ten minutes, and is taken once (AS-220). A state from a log is
// therefore useless, and a sign-in that begins in one browser cannot end in another (login CSRF).
//
// Everything that an upstream session starts refers to it: the browser session, and each grant
// approved in that session (AS-217). No MCP token contains a part of an upstream token; the link is
// a column in the store. When the session ends, EndUpstreams erases its tokens, revokes those
// grants and ends those browser sessions in one transaction (AS-219).
//
// The ID of a new user is a MAC of connector, issuer and subject under the master key. An e-mail
// address never identifies a user; rules may use a verified one.
//
// # The vault
//
// Each row of tokens is an envelope: its own data key sealed by the master key, and the content
// sealed by the data key. Both use AES-256-GCM and are bound to the row, connector, subject and
// user (AS-223). Earlier versions bound the envelope to the row ID only. settle converts such rows
// once, before any other access, and from then on they are refused. Types that hold tokens, claims
// or verifiers print as "[redacted]".
//
// # Checks
//
// Check answers from the store while the provider's last confirmation is younger than the caller
// demands: CheckEvery at introspection, ten seconds at a refresh. Otherwise it asks the provider.
// It uses a refresh if the access token is about to expire (always, with CheckBy), else
// introspection or user info. A rejected access token counts only if the provider also rejects a
// refresh.
//
// One process asks once for all its callers (singleflight), and one replica for all replicas.
// ClaimUpstream reserves the session for thirty seconds, and the version of the row decides whose
// answer is stored. The others wait up to ten seconds for that answer.
//
// Renewed tokens are stored before they are used, because the refresh token that brought them may
// already be invalid; Close waits for that. They replace the earlier tokens only after the provider
// has named the same user for them. Until then both are stored, and the next replica that reads
// them asks. Run asks the same question for sessions whose tokens are not presented. Every answer
// applies the connector's rules again.
//
// # The broker
//
// Token gives a resource server the access token of its caller, if a BrokerRule of the connector
// names both the server and the scopes. It prefers the session that the MCP token depends on, then
// a linked session of the same user, then the newest one. Scopes that the user has not granted yet
// are interaction_required, which authserver turns into a link for that user only.
//
// # When a provider fails
//
// Every error of package provider wraps one of five, and only the first can end a session:
//
//	ErrDenied         the provider has ended the session      access_denied
//	ErrUnreachable    no answer, 5xx, 429                     temporarily_unavailable
//	ErrGarbage        an invalid answer                       server_error
//	ErrMisconfigured  the provider refuses this client        server_error
//	ErrUnsupported    the provider does not offer this        server_error
//
// The last column is the error code of a sign-in that fails with the error. The provider's own text
// goes to the log only. During a check, every error but ErrDenied leaves the session unchanged. Its
// last confirmation counts for the connector's Outage. After that, Check returns
// temporarily_unavailable with Retry-After, and uses up or ends nothing.
//
// If three sessions get no answer and no other session gets one, the provider is not asked for ten
// seconds. No request then waits for a provider that is down. One question a second still goes
// through, and an answer ends the pause. Sign-ins do not count, because strangers can make them
// fail at will. A "too many requests" answer postpones only its own session. A provider that is
// down does not prevent a start.
package thirdparty
