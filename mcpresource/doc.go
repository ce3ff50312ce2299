// Package mcpresource makes any net/http MCP server an OAuth 2.1 protected resource.
//
//	v, err := mcpresource.Discover(ctx, "https://auth.example.com", nil)
//	g, err := mcpresource.New(mcpresource.Config{
//		Resource:             "https://mcp.example.com/mcp",
//		AuthorizationServers: []string{"https://auth.example.com"},
//		Validator:            v,
//		Policy: &mcpresource.Rules{
//			Base:  []string{"mcp"},
//			Tools: map[string][]string{"delete_*": {"files:write"}},
//		},
//	})
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
// issuer, audience and times (401), the method (405), duplicated MCP headers (400), the
// size of the body (413) and its time (408), its envelope (400), the scopes of the
// operation (403 with all of them), the rate (429), the owner of the session (404), how
// many sessions the caller has (429). Then the Authorization header is removed and the
// handler runs, with a context that ends when the token expires or is revoked. It gets
// the body of a POST, and of no other method.
//
// The envelope is parsed strictly, because parsers differ: a body in which another
// JSON decoder could see another method or name is refused. A check behind the
// decoder of the MCP library in use, as in package gosdk, remains the boundary.
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
// ttl. The ttl is the issuer's choice, within one second and one hour here, and 15
// seconds when it makes none. A cache between the two that answers in spite of
// "Cache-Control: no-cache" adds what it keeps.
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
// of a stream is validated again every 15 seconds.
//
// # Upstream tokens
//
// A tool that works with the caller's account at GitHub, Google and the like gets a token of
// that provider from a [Broker], which shows the caller's MCP token to the authorization
// server that issued it (RFC 8693) and to nobody else. When the person has to allow that
// first, the error is an [InteractionRequiredError] with the page to visit.
//
// The package depends on the standard library and go-jose, and on no MCP SDK.
package mcpresource
