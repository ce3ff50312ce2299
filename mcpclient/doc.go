// Package mcpclient is for programs that call MCP servers as themselves: CI jobs, pods, agents. One
// call turns the identity that a platform gives them into a token for an MCP server, and keeps it
// fresh; no secret is stored anywhere.
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
// # How a token is had
//
// [Workload] asks the MCP server for its challenge, reads its protected resource metadata (RFC 9728),
// which must be about that very URL, and the metadata of its authorization server (RFC 8414), which
// must name that very issuer. It has the platform make a token for that authorization server, and
// trades it for an access token (RFC 7523 §2.1, the grant type jwt-bearer) for that MCP server
// (RFC 8707). No registration is needed: the authorization server trusts the platform.
//
// With [Credentials] and no platform token, the grant is that of client credentials, with a secret
// or with a private key. With both, the platform token is an assertion of that client, as an
// identity assertion for enterprise-managed authorization is.
//
// # What is never sent
//
// A platform token goes to the authorization server that it was made for, and to no other: its
// audience must be the issuer or the token endpoint. A platform that cannot make tokens for any
// audience needs Config.Audience, and then Config.AuthorizationServer has to say who may get them.
// The access token goes to the origin of Config.Server alone. No redirect is followed. An MCP server
// at an https URL cannot send the program to a plain http URL.
//
// # How it stays fresh
//
// A token is renewed ahead of time, while requests go on with the one there is; how far ahead is
// partly random, so that replicas do not ask at once. Any number of requests share one renewal. What
// fails for a while is tried again within the request, Retry-After is honoured, and then all callers
// get the error at once until some time has passed. What the authorization server refuses
// (invalid_grant, invalid_scope, unauthorized_client and the like) is tried once, and again only
// after a delay that grows to five minutes; see [Error].
//
// A 401 of the MCP server gets a new token and the request is repeated, once, if its body can be had
// again. A 403 for want of scopes gets a token with more scopes, if they are in Config.StepUp.
//
// # Tokens that are bound to a key
//
// With [DPoP] (RFC 9449) a stolen token is of no use without the key, which stays in the memory of the
// program. An MCP server that demands it gets it without being asked for.
//
// # What it does not do
//
// The Workload API of SPIFFE needs gRPC: have spiffe-helper write the JWT-SVID to a file, and use
// [File]. Tokens are not stored: a new process asks for its own.
package mcpclient
