// Package authserver is an OAuth 2.1 authorization server for the Model Context Protocol, as an
// embeddable library: New creates it on a directory or a database, Register mounts it on a mux, and
// Serve runs it together with other handlers on that mux, with a graceful shutdown.
//
// The example below is a complete MCP server with its own login. Package mcpserver does the same
// with one call, and has all other features of mcp-authd. Assemble, Config and the interfaces are
// for the assembly of mcp-authd itself, which has packages that other modules cannot import.
//
// # One request, from edge to store
//
// Every handler does three things: it parses the request into a typed value, calls the core, and
// writes the outcome. A function with an http.ResponseWriter never touches the store, and a
// function that touches the store never sees a writer. Package internal/flow implements the
// browser's side without HTTP.
//
//	routes.go            paths and CORS; observe.go is the request log
//	form.go              reads bodies of limited size; write.go writes JSON and errors
//	pages.go             routes of pages, and their shared parts
//	forms.go             reads the forms of pages, and their sealed content
//	authorize.go         GET /authorize and POST /consent
//	login.go             GET and POST /login, POST /logout
//	provider.go          POST /depart, POST /claim, /connect: to a provider
//	callback.go          and back again
//	home.go, setup.go    the start page, and the first administrator
//	internal/flow        called by these; each call returns a Step
//	steps.go             writes a Step; providersteps.go those about providers
//	view.go              the display of records; advice.go the advice on pages
//	errorpages.go        pages with only a message
//	delegation.go        the interface to a package that talks to providers
//	token.go             POST /token; introspect.go is RFC 7662 and revoke.go RFC 7009
//	grants.go            assembles the parts of these three:
//	internal/grant       client authentication, the grants, and the tokens
//	internal/shell       fosite, which selects the grant for a token request
//	protocol.go          connects the flow to these two
//	wellknown.go         RFC 8414, OpenID discovery, JWKS
//	status.go            the status lists of tokens; statusshelf.go caches them
//	server.go            Assemble builds all of this; config.go is its configuration
//	embed.go             New, for programs that embed the server
//	resources.go         lists scopes for programs that embed the server
//	serve.go             listeners, timeouts, and the order of the shutdown;
//	                     housekeeping.go runs in the background
//
// Several of these share the packages internal/form (the parameters of a request),
// internal/clients, internal/catalogue (the resources), internal/binding (provider sessions),
// internal/connect (the links to /connect), and internal/refusal (reasons of refusals).
//
// The authorization URL itself is the state of an authorization: login and consent carry it, sealed
// and bound to the browser. The server stores nothing before a user approves, and any replica can
// handle the next step. Only while a browser is at a provider, the server stores the request. The
// provider's response finds it together with a cookie of that request.
//
// # One authorization request
//
//	GET /authorize      authorizePages.authorize reads the query; flow.Authorize examines it
//	                    (identify, validate, permit) and Next chooses: Login, AskConsent,
//	                    or a code right away; steps.write writes that
//	POST /login         loginPages.login: Passwords.SignIn stores the session, and the browser
//	                    goes back to /authorize
//	POST /consent       authorizePages.consent: flow.Consent examines the request again with the
//	                    current client, compares it with the page, and issues the code
//
// # One sign-in at a provider
//
//	GET /authorize      Next returns AskBeforeProvider: the user is asked. The server stores
//	                    nothing yet, and the only cookie is the form's
//	POST /consent       SignIns.Consent compares the page and stores the request to the
//	                    provider (Delegation.Depart); steps.toProvider sets the cookie and
//	                    redirects the browser
//	GET /callback/ID    providerPages.response finds the cookie by the state; SignIns.Return lets
//	                    Delegation.Return redeem the provider's code and store user
//	                    and sessions together, and answers the approved request
//	                    with a code
//	POST /token         as usual; refresh and introspection also check the session at the
//	                    provider
//
// POST /depart does the same without a client, to sign in on the start page or to connect another
// account. /connect/REQUEST is the page that a token exchange sends a user to.
//
// Internally, github.com/ory/fosite (internal/shell) validates requests in the order of the
// specifications and dispatches to the grants. Its types do not appear in this package's API.
package authserver
