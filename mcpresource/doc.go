// Package mcpresource makes any net/http MCP server an OAuth 2.1 protected resource.
//
//	v, err := mcpresource.Discover(ctx, "https://auth.example.com", nil)
//	if err != nil {
//		log.Fatal(err)
//	}
//	g, err := mcpresource.New(mcpresource.Config{
//		Resource:             "https://mcp.example.com/mcp",
//		AuthorizationServers: []string{"https://auth.example.com"},
//		Validator:            v,
//		Policy: &mcpresource.Rules{
//			Base:  []string{"mcp"},
//			Tools: map[string][]string{"delete_*": {"files:write"}},
//		},
//	})
//	if err != nil {
//		log.Fatal(err)
//	}
//	g.Register(mux, yourMCPHandler)
//
// A [Guard] publishes the protected resource metadata (RFC 9728), answers requests
// without a good token with the exact challenge that makes MCP clients sign in, and
// lets a request pass only when its token was issued by a named authorization server
// for this very resource, is in time, and has the scopes of the operation. Handlers
// find the caller with [FromContext]; the token itself never reaches them.
//
// # What a request goes through
//
// In this order, each step with one answer: Host and Origin (403), CORS preflight,
// the Authorization header (401, 400), the token (401; 503 when it cannot be judged),
// issuer, audience and times (401), the proof of a bound token (401), how much is under
// way (429), the method (405), the size of the body (413) and its time (408), the memory of
// all bodies (429, 503), duplicated MCP headers and such as differ from the body (400), its envelope (400), the scopes of the
// operation (403 with all of them), the rate (429), Check (403), the owner of the session
// (404), how many sessions the caller has (429). Then the Authorization header is removed and the handler runs, with a
// context that ends when the token expires or is revoked. It gets the body of a POST, and
// of no other method.
//
// The envelope is parsed strictly, because parsers differ: a body in which another
// JSON decoder could see another method or name is refused. A check behind the
// decoder of the MCP library in use, as in package gosdk, remains the boundary.
//
// # Who may do what
//
// [Rules] say it in tables, by method, tool, prompt and resource; a [PolicyFunc] or
// Rules.Refine looks at the arguments too, which [Operation.Args] decodes without leaving
// room for another reading. Config.Check then asks whether the thing is theirs. A caller
// who lacks a scope is told of all that the message needs at once, and, if the client is
// of a revision before 2026-07-28, of those it has as well ([StepUp]).
//
// What goes on after its request, as a task does, asks [Guard.Recheck] before it acts.
//
// # Limits
//
// [Limits] are on unless turned off: how often and how much at once each caller may do, a
// person counting once through whichever applications. A request counts as under way before
// its body is read, and its bytes count in [Bodies] until it is over. The memory of the
// limits is bounded: a caller counts for as long as there is something to give back, and of
// more than 50,000 such the one with least to lose is forgotten. Sessions are bounded for
// each caller (MaxSessions), for those without a token together (MaxAnonymousSessions) and
// in all ([NewMemorySessions]).
//
// # Sessions
//
// A session belongs to the person for whom the server has opened it, by its answer to
// initialize; for anybody else there is no such session (404). Each request is judged by
// its own token, so another application of the same person may go on in it, as clients do
// that register again for more scope; events then say which one opened it. [OwnerClient]
// binds sessions to the application too.
//
// # The audit
//
// Config.Calls gets a [CallEvent] for each call when it has ended: who, by which
// application, by which token (jti), what, how it ended, how long it took. With a Logger
// and no Calls it is a line in the log. Arguments are left out unless CallArguments is
// set. Config.Audit gets an [Event] for each decision, when it is made.
//
// # Several authorization servers
//
// [AnyOf] takes a validator for each. A token that one of them has seen costs no more
// than with one alone.
//
// # Outages
//
// The keys of an authorization server are read again every five minutes, without making
// anybody wait, and when a token names one that is unknown. When they cannot be read they
// serve on for 24 hours. Then, at once for a token by a key that is unknown, and when there
// were none yet, the answer is 503 with Retry-After: a 401 would make clients throw away good
// tokens and ask people to sign in at a server that is down. Introspection serves on
// for CacheTTL. Streams that are open go on until their token expires, or its status
// list is too old.
//
// # Revoked tokens
//
// [NewJWTValidator] and [Discover] check tokens without a call to the authorization
// server for each of them, and still see a revocation: a token with a status claim names
// its place in a status list of its issuer (OAuth Token Status List,
// draft-ietf-oauth-status-list), and each validation looks there, at 50 nanoseconds. The
// list is fetched when first needed, and again, in the background, just before its ttl
// has passed; a request waits only for the first one, or when the one at hand is older
// than ttl, as after a time in which nobody asked. While a request runs its list is polled without others, and its context ends
// when the token is revoked, with a cause that wraps [ErrInvalidToken].
//
// A revocation is seen after the ttl of the list plus one second at most: mcp-authd
// serves a list that is up to a second old, and this package uses it for no longer than
// ttl. The ttl is the issuer's choice, within one second and one hour here, and 7
// seconds when it makes none. A cache between the two may answer for a second (the request
// says "Cache-Control: max-age=1"); one that does not heed that adds what it keeps.
//
// When the list cannot be read again, or what comes is not signed by the issuer or has
// expired, the one at hand counts for StatusStale longer, 5 minutes, and never beyond its
// own exp; a revocation in an outage is seen so much later at most. Then, and when there
// is none yet, requests with such tokens get 503 with Retry-After, and streams end with a
// cause that wraps [ErrUnavailable]. A list must be at the origin of the issuer, or the
// token is refused.
//
// Tokens without a status claim are good until they expire, unless RequireStatus is set.
// InsecureIgnoreStatus turns the check off. Other ways to see revocations are
// [NewIntrospectionValidator], within CacheTTL, and [Local], at once; with them, the token
// of a stream is validated again every 5 seconds.
//
// # Upstream tokens
//
// A tool that works with the caller's account at GitHub, Google and the like gets a token of
// that provider from a [Broker], which shows the caller's MCP token to the authorization
// server that issued it (RFC 8693) and to nobody else. When the person has to allow that
// first, the error is an [InteractionRequiredError] with the page to visit.
//
// # Tokens that are bound to a key
//
// A token with a cnf claim (RFC 9449, DPoP) is good together with a proof of its key in
// the DPoP header, and the guard demands one: for this method, this URL, this token, made
// within five minutes and never used before. Config.DPoP has the guard offer that, demand
// it, demand nonces, or share the memory of proofs between replicas ([Replays]).
//
// # Browsers
//
// Every request is refused whose Host is not the resource's or in Hosts, or whose Origin,
// if there is one, is not its own or in Origins: no other page, and no name that somebody
// binds to this address, gets further. CORS lets those that may call read the answers.
//
// The package depends on the standard library and go-jose, and on no MCP SDK.
package mcpresource
