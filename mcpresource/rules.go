package mcpresource

import (
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/rules"
)

// Operation is one JSON-RPC request or notification, as policies see it. A request that gives
// access to a prompt or resource indirectly counts as both. After completion/complete follows the
// prompts/get or resources/read of its reference, and after subscriptions/listen the
// resources/subscribe of each URI.
type Operation = rules.Operation

// Policy returns the requirement of each operation. It must be safe for concurrent use.
type Policy = rules.Policy

// Requirement contains the conditions for an operation. The zero value requires any valid token.
type Requirement = rules.Requirement

// Rules is a Policy of tables by method, tool, prompt and resource. Refine can also use the
// arguments, and Config.Check then checks the object. A caller who lacks a scope gets a challenge
// with all scopes that the message needs ([StepUp]).
//
// A key is an exact name or a pattern. In a pattern, "*" matches any text; for resources it must be
// the last character. An exact name takes precedence, then the pattern with the most characters
// other than "*". Equally long patterns require the scopes of all. Do not change Rules after New.
type Rules = rules.Rules

// Authentication states how a user must have authenticated (RFC 9470). A token that does not
// satisfy it gets 401 with insufficient_user_authentication, the ACR values and the maximum age.
// Many clients do not know that error: they refresh their token, and sign in only if a scope is
// missing. For them, mcp-authd omits the scope from a refreshed token when the authentication is
// too old. A machine's token has no user and never satisfies it. The zero value requires nothing.
type Authentication = rules.Authentication

// Clearance states which approval each call of a tool needs. A user sees the tool and the arguments
// on a page of the authorization server, and approves this one call. An approval is for these
// arguments, this user, client and grant, once, within five minutes (RS-217). The zero value
// requires none.
//
// Use it for the few tools whose effect cannot be undone. Scopes limit a client in general. Users
// who must approve every call soon stop reading.
type Clearance = rules.Clearance

// ScopeError means that the caller lacks scopes that an operation needs.
type ScopeError = rules.ScopeError

// AuthenticationError means that an operation requires an authentication of the user that their
// token does not show.
type AuthenticationError = rules.AuthenticationError

var (
	// ErrAmbiguousBody means that a JSON-RPC body is malformed, or that JSON decoders could read
	// different requests from it.
	ErrAmbiguousBody = rules.ErrAmbiguousBody
	// ErrResourceURI means that a resource URI could name a resource with other rules: it has dot
	// segments or is not canonical (RFC 3986 §6.2.2).
	ErrResourceURI = rules.ErrResourceURI
)
