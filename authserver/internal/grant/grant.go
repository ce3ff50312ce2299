// Package grant is the half of the authorization server that stands behind POST /token: what
// clients get for a code, a refresh token, their own credentials or a token of a person, and
// what their tokens are. It knows the store and no HTTP: the edge parses a form into a
// TokenRequest, once, and writes the reply.
//
//	clientauth.go    which client asks; assertion.go by a signed assertion
//	proof.go         which key it has proved to have (RFC 9449)
//	approval.go      a person's yes becomes a grant and its code
//	code.go          the code becomes tokens
//	device.go        a device polls for what a person has approved elsewhere
//	refresh.go       a refresh token becomes its successor; refreshtoken.go is what it is made of
//	machine.go       client credentials
//	programkey.go    client credentials of a key that a person made for a program
//	bearer.go        assertions of issuers that the operator trusts; bearertarget.go is what for
//	exchange.go      RFC 8693: what a token is exchanged for
//	providertokens.go  a provider's token for a resource server
//	helpers.go       less than the client has, for a helper
//	mint.go          the RFC 9068 access token
//	tokens.go        RFC 7662 and RFC 7009: what a token says, and its end
package grant

import (
	"slices"

	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// TokenRequest is a request to the token endpoint (OAuth 2.1 §3.2.2), except a token
// exchange. A field is empty when its parameter is absent.
type TokenRequest struct {
	GrantType   string      // grant_type: REQUIRED
	Credentials Credentials // of the client
	Scopes      oauth.Scopes
	Resources   []string // RFC 8707 §2.2
	From        string   // the network that it comes from, as people are shown it
	Proof       Proof    // of the client's key (RFC 9449 §5)

	Code        string // of the authorization code grant: code, REQUIRED
	Verifier    string // code_verifier: REQUIRED (RFC 7636 §4.5)
	RedirectURI string // redirect_uri: for clients of OAuth 2.0

	RefreshToken string // of the refresh token grant: refresh_token, REQUIRED
	DeviceCode   string // of the device authorization grant: device_code, REQUIRED (RFC 8628 §3.4)
	Assertion    string // of the grant for assertions: assertion, REQUIRED (RFC 7523 §2.1)
}

var errOtherResource = oauth.NewError(oauth.InvalidTarget, "The requested resource is not the one that was granted.")

// ErrUnsupported answers a grant type that the metadata do not list (AS-85).
var ErrUnsupported = oauth.NewError(oauth.UnsupportedGrantType, "The grant type is not supported.")

// may reports whether a client is registered for a grant type.
func may(c storage.Client, grantType string) bool { return slices.Contains(c.GrantTypes, grantType) }
