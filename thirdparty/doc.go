// Package thirdparty delegates sign-in to the identity providers that people already have (MCP
// 2025-03-26 authorization §2.10): it sends the browser there, learns who signed in, keeps the
// provider's tokens in a vault, renews them, and ends what rests on them when the provider does. A
// resource server can be given the upstream token of the calling user (RFC 8693); it never gets one
// that was not meant for it, and no MCP token ever goes to a provider.
//
// # Words
//
// A provider is a server of another organisation: Google, or a company's Keycloak. A connector is
// our configuration of sign-in at one: client credentials, rules, who may have its tokens. Its id
// names it everywhere: the redirect URI, an identity, an audit event ("connector"), and, outside
// this package, a delegation.Provider and the audience of a token exchange.
//
// An upstream session (storage.Upstream, "ups_...") is one person's session at a provider,
// with its tokens and claims. An identity (storage.Identity) ties a person there, by
// connector and subject, to a user here.
//
// Each sign-in is one authorization code flow with a provider: Depart makes the authorization
// request, Return takes the authorization response. Its purpose is to sign in, to link a further
// account, or to extend what the tokens may do. Package delegation has the types that authserver
// and this package share.
//
// # One sign-in, from edge to store
//
// Package authserver asks the person, and calls Depart and Return; nothing here ever sees
// an http.ResponseWriter, but for the one endpoint that providers call themselves.
//
//	delegation.go   New, and what people are told when something fails
//	depart.go       the authorization request: state, binding, nonce, PKCE; stored sealed
//	return.go       the authorization response: taken once, code redeemed, rules applied
//	identity.go     who a person is here; accounts listed and untied
//	vault.go        what is sealed, and how; reseal.go: under another master key;
//	                settle.go: what versions before have sealed
//	check.go        does a session stand? asked before tokens of ours are honoured
//	inquire.go      the question itself: one replica asks, and stores the answer first
//	outage.go       what is made of a question that stays without an answer
//	renew.go        new tokens, and whose they are
//	end.go          why sessions end, and what goes with them
//	run.go          the same question in the background, for sessions that are due
//	backchannel.go  OpenID Connect Back-Channel Logout 1.0
//	broker.go       RFC 8693: a token of the provider for a resource server
//	probe.go        what the doctor command sees
//
// A connector is made ready once:
//
//	config.go, types.go   what operators write, and the types that there are
//	validate.go           its defaults, and what is wrong with it
//	connector.go          a Connector with its defaults, compiled rules and provider
//	rules.go              who may come in, and with which scopes
//
// Three packages below it know nothing of sessions and stores: internal/provider speaks to
// providers, and is the only one that does; internal/rules judges by what they say of a
// person; internal/claim reads it.
//
// # Binding
//
// Neither the state nor the cookie of a request is of use alone: the stored request is found by a
// digest of both, is valid for ten minutes, and is taken once (AS-220). So a state from a log is
// useless, and a sign-in that begins in one browser cannot end in another (login CSRF).
//
// What begins with an upstream session names it: the browser session, and each grant that
// is approved in it (AS-217). No MCP token holds a part of an upstream token; the link
// is a column of the store. When the session ends, EndUpstreams erases its tokens, revokes
// those grants and ends those browser sessions in one transaction (AS-219).
//
// The id of a new user is a MAC of connector, issuer and subject under the master key. An
// e-mail address never decides who a person is; rules may use a verified one.
//
// # The vault
//
// Each row of tokens is an envelope: a data key of its own, sealed by the master key, and
// the content under the data key, both by AES-256-GCM bound to the row, connector, subject
// and user (AS-223). What versions before bound to the id of the row is converted once
// (settle), before anything else is read or written, and refused from then on.
// Types that hold tokens, claims or verifiers print as "[redacted]".
//
// # Checks
//
// Check answers from what is stored while the provider's last word is younger than the caller
// demands: CheckEvery at introspection, ten seconds at a refresh. Else it asks: by refresh if the
// access token is about to end (always, with CheckBy), else by introspection or user info; a no to
// the access token counts only when a refresh is refused, too. One process asks once for all its
// callers (singleflight), and one replica for all replicas: ClaimUpstream gives it the session for
// thirty seconds, and the version of the row decides whose answer is stored. The others wait up to
// ten seconds for that answer. Renewed tokens are stored before they are used, because the refresh
// token that brought them may be spent by now; Close waits for that. They take the place of the
// earlier ones when the provider has named the same person for them, and not before: until then
// they lie beside them, and the replica that finds them so asks. Run asks the same for sessions
// whose tokens are not presented. With every answer the rules of the connector are applied again.
//
// # The broker
//
// Token gives a resource server the access token of a person who calls it, if a BrokerRule
// of the connector names both the server and the scopes. It takes the session that the MCP
// token rests on, else a linked one of the same user, else the newest. Scopes that the
// person has not granted yet are interaction_required, which authserver turns into a link
// for that person alone.
//
// # When a provider fails
//
// Every error of package provider wraps one of five, and only the first can end a session:
//
//	ErrDenied         the provider says that it is over       access_denied
//	ErrUnreachable    no answer, 5xx, 429                     temporarily_unavailable
//	ErrGarbage        an answer that is not what it should be server_error
//	ErrMisconfigured  the provider refuses this client        server_error
//	ErrUnsupported    the provider does not offer this        server_error
//
// The last column is the error code of a sign-in that fails so; what the provider said goes
// to the log only. At a check everything but ErrDenied leaves the session as it is: its last
// confirmation holds for the connector's Outage, after which Check answers
// temporarily_unavailable, with Retry-After, and nothing is spent or ended. When three
// sessions stay without an answer, and none gets one, their provider is left alone for ten
// seconds, so that no request waits for one that is down; one question a second goes
// through, and an answer ends the rest. Sign-ins do not count: strangers make them fail at
// will. Nor does an answer that says "too often", which puts off that session alone. A
// provider that is down at the start stops no start.
package thirdparty
