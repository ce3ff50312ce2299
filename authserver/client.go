package authserver

import (
	"crypto/subtle"
	"slices"

	"github.com/ory/fosite"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/storage"
)

// The grant types that this server implements.
const (
	grantCode    = "authorization_code"
	grantRefresh = "refresh_token"
	grantMachine = "client_credentials"
	// RFC 8693; with a Broker only.
	grantExchange = "urn:ietf:params:oauth:grant-type:token-exchange" // #nosec G101 -- a name
)

// secretMatches compares a presented secret with the stored hash in constant time.
// A client without a secret matches nothing.
func secretMatches(c storage.Client, secret string) bool {
	if c.SecretHash == nil {
		return false
	}
	h := secrets.Hash(secret)
	return subtle.ConstantTimeCompare(h[:], c.SecretHash[:]) == 1
}

// shellClient shows a client to fosite. For one authorization request, redirect
// holds the single URI that we have matched ourselves and scopes what we have
// decided to be requestable, so that fosite can only agree.
type shellClient struct {
	storage.Client
	redirect string
	scopes   []string
}

func (c *shellClient) GetID() string                    { return c.ID }
func (c *shellClient) GetHashedSecret() []byte          { return nil }
func (c *shellClient) GetRedirectURIs() []string        { return []string{c.redirect} }
func (c *shellClient) GetGrantTypes() fosite.Arguments  { return c.GrantTypes }
func (*shellClient) GetResponseTypes() fosite.Arguments { return fosite.Arguments{"code"} }
func (c *shellClient) GetScopes() fosite.Arguments      { return c.scopes }
func (c *shellClient) IsPublic() bool                   { return c.Public() }
func (c *shellClient) GetAudience() fosite.Arguments    { return nil }
func (c *shellClient) may(grantType string) bool        { return slices.Contains(c.GrantTypes, grantType) }
func (*shellClient) GetResponseModes() []fosite.ResponseModeType {
	return []fosite.ResponseModeType{fosite.ResponseModeDefault, fosite.ResponseModeQuery}
}
