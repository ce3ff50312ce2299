// Package authserver is an OAuth 2.1 authorization server for the Model Context
// Protocol, as an embeddable library: New builds it, Register mounts it on a mux, and
// Serve runs it, with whatever else is on that mux, to an orderly end.
//
// It needs a store (storage/sqlite, storage/postgres), a master key (keys.SecretFile) and, for
// clients that register themselves, a Registry (dcr.New). The example below is all there is to an
// MCP server that has its own login; package mcpserver has the same by one call, with everything
// that mcp-authd has besides.
//
// # One request, from edge to store
//
// Every handler does three things: it parses the request into a typed value, calls
// the core, and writes the outcome. A function that holds an http.ResponseWriter
// never touches the store, and one that touches the store never sees a writer. What stands
// behind the browser is the package internal/flow, which knows no HTTP at all.
//
//	routes.go            which path goes where, CORS; observe.go is the request log
//	form.go              reads bodies of bounded size; write.go writes JSON and errors
//	pages.go             which page goes where, and what the pages are made of
//	forms.go             reads the forms of our pages, and what they carry along sealed
//	authorize.go         GET /authorize and POST /consent
//	login.go             GET and POST /login, POST /logout
//	provider.go          POST /depart, POST /claim, /connect: to a provider
//	callback.go          and back again
//	home.go, setup.go    the start page, and the first administrator
//	internal/flow        what these call; each call returns a Step
//	steps.go             writes a Step; providersteps.go those about providers
//	view.go              what pages show of records; advice.go what they advise
//	errorpages.go        the pages that have nothing but a message
//	delegation.go        what this package needs of a package that talks to providers
//	token.go             POST /token; introspect.go is RFC 7662 and revoke.go RFC 7009
//	grants.go            puts together what these three need:
//	internal/grant       client authentication, the grants, and what tokens are
//	internal/shell       fosite, which finds the grant that answers
//	protocol.go          what the flow needs of these two
//	wellknown.go         RFC 8414, OpenID discovery, JWKS
//	status.go            the status lists of tokens; statusshelf.go keeps them in memory
//	server.go            New puts all of this together; config.go is what it takes
//	resources.go         which scopes there are, for programs that embed the server
//	serve.go             listeners, timeouts, and the order in which all ends;
//	                     housekeeping.go is what goes on in the background
//
// Rooms that more than one of these need: internal/form (the parameters of a request),
// internal/clients, internal/catalogue (the resources), internal/binding (whether the
// session at a provider stands), internal/connect (the links to /connect), and
// internal/refusal (why a request is refused).
//
// The state of an authorization is the authorization URL itself: login and consent
// carry it along sealed and bound to the browser, so that nothing is stored before
// a person approves, and any replica can take the next step. Only while a browser is at a
// provider something is stored; it is found by what the provider sends back together with
// a cookie of that request.
//
// # One authorization request
//
//	GET /authorize      authorizePages.authorize reads the query; flow.Authorize examines it
//	                    (identify, validate, permit) and Next chooses: Login, AskConsent,
//	                    or at once a code; steps.write writes that
//	POST /login         loginPages.login: Passwords.SignIn stores the session, and the browser
//	                    goes back to /authorize
//	POST /consent       authorizePages.consent: flow.Consent examines the request again, by the
//	                    client as it is now, compares it with what was shown, and issues the code
//
// # One sign-in at a provider
//
//	GET /authorize      Next says AskBeforeProvider: the person is asked. Nothing is
//	                    stored yet, and the one cookie is that of the form
//	POST /consent       SignIns.Consent compares what was shown and stores the request to the
//	                    provider (Delegation.Depart); steps.toProvider sets the cookie and sends
//	                    the browser off
//	GET /callback/ID    providerPages.response finds the cookie by the state; SignIns.Return has
//	                    Delegation.Return redeem the provider's code and store person
//	                    and sessions at once, and answers the request that was
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
