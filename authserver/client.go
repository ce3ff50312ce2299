package authserver

import (
	"context"
	"crypto/subtle"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/ory/fosite"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/oauth"
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

// findClient resolves a client id.
func (s *Server) findClient(ctx context.Context, id string) (storage.Client, error) {
	c, err := s.cfg.Clients.Client(ctx, id)
	return s.found(c, err)
}

// currentClient is findClient for a person's answer, which a client that was replaced some
// seconds ago must not get by.
func (s *Server) currentClient(ctx context.Context, id string) (storage.Client, error) {
	known, ok := s.cfg.Clients.(CurrentClients)
	if !ok {
		return s.findClient(ctx, id)
	}
	c, err := known.Current(ctx, id)
	return s.found(c, err)
}

// fetchClient resolves a client id that is the URL of a metadata document by reading
// the document.
func (s *Server) fetchClient(ctx context.Context, id string) (storage.Client, error) {
	c, err := s.cfg.Documents.Fetch(ctx, id)
	return s.found(c, err)
}

// vouched reports whether the operator knows a client, so that people need no warning.
func (s *Server) vouched(c storage.Client) bool {
	return c.Operated() || s.cfg.Documents != nil && s.cfg.Documents.Vouched(c)
}

// mayFetch reports whether an id is the URL of a document that may be read.
func (s *Server) mayFetch(id string) bool {
	return s.cfg.Documents != nil && (strings.HasPrefix(id, "https://") || strings.HasPrefix(id, "http://"))
}

// errUnknown is the cause of a refusal when nothing is known of a client id, rather than
// something that is wrong with it.
var errUnknown = errors.New("authserver: no such client is known")

// unfetched is what the error of a resolver is when the document that a client is identified
// by cannot be had. It does not say why: that could tell strangers what there is inside.
type unfetched interface {
	error
	Unfetched()
}

// found translates what a lookup has found. A protocol error is the resolver's own word
// to the people who run the client.
func (s *Server) found(c storage.Client, err error) (storage.Client, error) {
	var ours *oauth.Error
	switch {
	case errors.As(err, &ours):
		return c, ours
	case errors.As(err, new(unfetched)):
		e := oauth.NewError(oauth.TemporarilyUnavailable, "The document that describes this application cannot be fetched: "+
			"there is no such server, it does not answer, or it cannot be reached from here.").Because(err)
		e.RetryAfter = 10 * time.Second
		return c, e
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrRevoked):
		return c, oauth.NewError(oauth.InvalidClient, "The client is not known to this authorization server. Register again.").Because(errors.Join(errUnknown, err))
	case err != nil: // the store, or the document that the client is identified by
		e := oauth.NewError(oauth.TemporarilyUnavailable, "The client cannot be looked up now. Please try again.").Because(err)
		e.RetryAfter = 2 * time.Second
		return c, e
	case c.Public() && s.cfg.ConfidentialOnly && c.Source != storage.SourceCIMD:
		return c, oauth.NewError(oauth.InvalidClient, "Public clients are not accepted by this authorization server.")
	}
	return c, nil
}

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
