package grant

import (
	"context"
	"slices"

	"github.com/mcp-authd/mcp-authd/authserver/internal/catalogue"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Machine is the client credentials grant (OAuth 2.1 §4.2, AS-173): a confidential client acts for
// itself, within the scopes that the operator registered. It issues no refresh token and stores
// nothing. An API key that a user created for a program acts for that user.
type Machine struct {
	Programs *ProgramKeys
	Catalog  *catalogue.Catalogue
	Minter   *Minter
}

// Reply issues a token for the requested resource and scopes, which have the same meaning as in
// other grants (AS-176).
func (g *Machine) Reply(ctx context.Context, client storage.Client, r TokenRequest) (*oauth.TokenResponse, error) {
	if client.Source == storage.SourcePerson && !client.Public() {
		return g.Programs.Reply(ctx, client, r)
	}
	if client.Public() || !may(client, oauth.GrantClientCredentials) {
		return nil, oauth.NewError(oauth.UnauthorizedClient, // AS-85
			"The client is not registered for the client credentials grant.")
	}
	resource, err := g.resource(ctx, client, r.Resources)
	if err != nil {
		return nil, err
	}
	registered := client.Scopes
	if !client.Operated() {
		registered = nil // a client's own claim is not a limit; it gets the defaults
	}
	scopes, err := policy.Machine(resource.Resource, registered, r.Scopes)
	if err != nil {
		return nil, err
	}
	now := g.Minter.Now()
	return g.Minter.issue(ctx, issuance{
		grant:    storage.Grant{ClientID: client.ID, Resource: resource.URI, ExpiresAt: now.Add(g.Minter.TTL)},
		scopes:   scopes,
		issuedAt: now,
		event:    audit.TokenIssued,
		proof:    r.Proof,
	})
}

// resource returns the requested resource, which must be registered for the client, or by default
// the client's first one.
func (g *Machine) resource(ctx context.Context, client storage.Client, requested []string) (policy.Resolution, error) {
	if len(requested) == 0 && len(client.Resources) > 0 {
		requested = client.Resources[:1]
	}
	resource, err := g.Catalog.Resolve(ctx, requested)
	if err == nil && len(client.Resources) > 0 && !slices.Contains(client.Resources, resource.URI) {
		err = oauth.NewError(oauth.InvalidTarget, "The client is not registered for the requested resource.")
	}
	return resource, err
}
