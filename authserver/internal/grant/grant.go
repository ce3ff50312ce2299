// Package grant implements POST /token without HTTP: it issues tokens for a code, a refresh token,
// client credentials or a user's token, and introspects and revokes them. It reads the store. The
// edge parses a form into a TokenRequest and writes the reply.
//
//	clientauth.go    authenticates the client; assertion.go with a signed assertion
//	proof.go         the key that the request has proved (RFC 9449)
//	approval.go      turns a user's approval into a grant and its code
//	code.go          exchanges the code for tokens
//	device.go        answers a device that polls for an approval
//	refresh.go       rotates refresh tokens; refreshtoken.go is their format
//	machine.go       client credentials
//	programkey.go    client credentials of an API key that a user created
//	bearer.go        assertions of trusted issuers; bearertarget.go chooses the resource
//	exchange.go      token exchange (RFC 8693)
//	providertokens.go  a provider's token for a resource server
//	helpers.go       tokens with fewer scopes for a sub-agent
//	mint.go          the RFC 9068 access token
//	tokens.go        introspection (RFC 7662) and revocation (RFC 7009)
package grant

import (
	"slices"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// TokenRequest is a request to the token endpoint (OAuth 2.1 §3.2.2), except a token
// exchange. A field is empty when its parameter is absent.
type TokenRequest struct {
	GrantType   string      // grant_type: REQUIRED
	Credentials Credentials // of the client
	Scopes      oauth.Scopes
	Resources   []string // RFC 8707 §2.2
	From        string   // the source network, as shown to users
	Proof       Proof    // of the client's key (RFC 9449 §5)

	Code        string // of the authorization code grant: code, REQUIRED
	Verifier    string // code_verifier: REQUIRED (RFC 7636 §4.5)
	RedirectURI string // redirect_uri: for clients of OAuth 2.0

	RefreshToken string // of the refresh token grant: refresh_token, REQUIRED
	DeviceCode   string // of the device authorization grant: device_code, REQUIRED (RFC 8628 §3.4)
	Assertion    string // of the grant for assertions: assertion, REQUIRED (RFC 7523 §2.1)
}

var errOtherResource = oauth.NewError(oauth.InvalidTarget, "The requested resource differs from the granted one.")

// ErrUnsupported answers a grant type that the metadata does not list (AS-85).
var ErrUnsupported = oauth.NewError(oauth.UnsupportedGrantType, "The grant type is not supported.")

// may reports whether a client is registered for a grant type.
func may(c storage.Client, grantType string) bool { return slices.Contains(c.GrantTypes, grantType) }
