// Package mcpclient lets programs call MCP servers: for the user who runs them, or under their own
// identity.
//
// [Person] signs in the user of a desktop or command-line program, and keeps the user signed in. See
// [NewPerson].
//
// [Workload] is for CI jobs, pods and agents. One call exchanges the identity that a platform assigns
// to the program for an access token, and keeps the token fresh. No secret is stored anywhere.
//
//	c, err := mcpclient.Workload(ctx, mcpclient.Config{
//		Server: "https://mcp.example.com/mcp",
//		Token:  mcpclient.GitHubActions(),
//	})
//	if err != nil {
//		log.Fatal(err)
//	}
//	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{
//		Endpoint:   "https://mcp.example.com/mcp",
//		HTTPClient: c.HTTPClient(),
//	}, nil)
//
// # Getting a token
//
// [Workload] gets the MCP server's challenge and reads its protected resource metadata (RFC 9728),
// which must name exactly that URL. It then reads the metadata of the authorization server (RFC
// 8414), which must name exactly that issuer. It requests a platform token for that authorization
// server. It exchanges this token for an access token for that MCP server (RFC 7523 §2.1, grant
// type jwt-bearer; RFC 8707). No registration is needed: the authorization server trusts the
// platform.
//
// With [Credentials] and no platform token, it uses the client credentials grant, with a secret or
// a private key. With both, the platform token is an assertion of that client, like an identity
// assertion for enterprise-managed authorization.
//
// # Where credentials are sent
//
// A platform token is sent only to the authorization server that it was issued for: its audience
// must be the issuer or the token endpoint. A platform that cannot set the audience needs
// Config.Audience, and Config.AuthorizationServer must then name the recipient. The access token is
// sent only to the origin of Config.Server. Redirects are not followed. An MCP server at an https
// URL cannot send the program to a plain http URL.
//
// # Renewal
//
// A token is renewed before it expires, while requests continue to use the current one. The exact
// time is partly random, so that replicas do not renew at once. Concurrent requests share one
// renewal. Temporary failures are retried within the request, and Retry-After is honored. After
// that, all callers get the error immediately until a delay has passed. Refusals by the
// authorization server (invalid_grant, invalid_scope, unauthorized_client and the like) are not
// retried within the request. The delay before the next attempt grows to five minutes; see [Error].
//
// After a 401 from the MCP server, the request is repeated once with a new token, if its body can
// be read again. After a 403 for missing scopes, it is repeated with a token that has more scopes,
// if Config.StepUp allows them.
//
// # Tokens bound to a key
//
// With [DPoP] (RFC 9449) a stolen token is useless without the key, which stays in the memory of
// the program. If the MCP server requires DPoP, it is used automatically.
//
// # Limits
//
// The Workload API of SPIFFE needs gRPC: let spiffe-helper write the JWT-SVID to a file, and use
// [File]. Tokens of a workload are not stored: a new process gets its own.
package mcpclient
