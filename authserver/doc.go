// Package authserver is an OAuth 2.1 authorization server for the Model Context
// Protocol, as an embeddable library: New builds it, Register mounts it on a mux, and
// Serve runs it, with whatever else is on that mux, to an orderly end.
//
// It needs a store (storage/sqlite, storage/postgres), a master key (keys.SecretFile) and,
// for clients that nobody has registered by hand, a Registry (dcr.New). The example below
// is all there is to an MCP server that has its own login; examples/embedded is a whole
// program.
//
// # One request, from edge to store
//
// Every handler does three things: it parses the request into a typed value, calls
// the core, and writes the outcome. A function that holds an http.ResponseWriter
// never touches the store, and one that touches the store never sees a writer.
//
//	routes.go            which path goes where; body limits, CORS, request log
//	browser.go           GET /authorize: runs the phases and writes what they decide
//	authorize.go         identify (can only fail to a page), then validate (can only fail
//	                     to the redirect URI)
//	dispatch.go          what comes next, as a pure function: login, consent, code
//	login.go, consent.go the two steps; each returns to /authorize, never to another step
//	ways.go              how somebody may sign in: with a password, or at which provider
//	depart.go            the step of whoever signs in at a provider: consent, then away
//	callback.go          and back again; answers the request that was approved
//	delegation.go        what this package needs of whoever talks to providers
//	bindings.go          who a browser belongs to, as far as providers have a say in it
//	pages.go             what the pages of package web are told; providerpages.go those
//	                     about providers, home.go the start page
//	token.go             POST /token; introspect.go is RFC 7662 and revoke.go RFC 7009
//	grants.go            puts together what these three need:
//	internal/grant       client authentication, the grants, and what tokens are
//	internal/shell       fosite, which finds the grant that answers
//	internal/form        the parameters of a request; form.go reads them
//	internal/clients     who a client id names; internal/catalogue the resources
//	internal/binding     whether the session at a provider that something rests on stands
//	internal/refusal     why a request is refused, for clients and for operators
//	connect.go           where a person grants what a provider's token lacks
//	wellknown.go         RFC 8414, OpenID discovery, JWKS
//	serve.go             listeners, timeouts, and the order in which all ends
//
// The state of an authorization is the authorization URL itself: login and consent
// carry it along sealed and bound to the browser, so that nothing is stored before
// a person approves, and any replica can take the next step. Only while a browser is at a
// provider something is stored; it is found by what the provider sends back together with
// a cookie of that trip.
//
// # One sign-in at a provider
//
//	GET /authorize      decide says stepDepart; showDeparture asks the person. Nothing is
//	                    stored yet, and no cookie of the trip is set
//	POST /consent       consentToLeave, then depart: Delegation.Depart stores the departure;
//	                    sendAway sets the cookie and sends the browser off
//	GET /callback/ID    comeBack finds the cookie by the state; arrive: Delegation.Return
//	                    takes the departure, redeems the provider's code, and stores person
//	                    and sessions at once; land and resume answer the request that was
//	                    approved, with a code of ours
//	POST /token         as ever; refreshing and introspection ask whether the session at the
//	                    provider stands
//
// POST /depart is the same way without a client, to sign in on the start page or to connect
// a further account; /connect/REQUEST the one to which a token exchange sends a person.
//
// github.com/ory/fosite is the protocol shell inside (internal/shell): it validates
// requests in the order of the specifications and dispatches to our own grants.
// None of its types appear in this package's API.
package authserver
