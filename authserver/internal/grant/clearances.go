package grant

import (
	"context"

	"github.com/mcp-authd/mcp-authd/authserver/internal/clearance"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Clearances handles requests of resource servers for a tool call approval (RS-217). The token of
// the call identifies the user.
type Clearances struct {
	Tokens *Tokens
	Desk   *clearance.Desk
}

// errCalled answers for every token that the resource server must not learn about.
var errCalled = oauth.NewError(oauth.InvalidGrant,
	"The token is not active, or was not issued for a resource of this client.")

// AskFor is Ask for a client. The client must be a resource server that the operator has assigned
// the token's resource to.
func (g *Clearances) AskFor(
	ctx context.Context, client storage.Client, token, tokenType string, d oauth.ClearanceDemand,
) (oauth.Clearance, error) {
	switch {
	case client.Public() || !client.Operated():
		return oauth.Clearance{}, oauth.NewError(oauth.UnauthorizedClient,
			"Only a resource server that the operator has registered, with credentials, may ask for a clearance.")
	case token == "":
		return oauth.Clearance{}, oauth.NewError(oauth.InvalidRequest, "The parameter 'subject_token' is missing.")
	case tokenType != oauth.TokenTypeAccess && tokenType != oauth.TokenTypeJWT:
		return oauth.Clearance{}, oauth.NewError(oauth.InvalidRequest,
			"The parameter 'subject_token_type' must name an access token.")
	}
	of, err := g.Tokens.Introspect(ctx, token)
	if err != nil {
		return oauth.Clearance{}, err
	}
	if !of.Active || of.ClientID == client.ID { // an MCP client, as for ProviderTokens
		return oauth.Clearance{}, errCalled
	}
	switch serves, err := g.Tokens.Serves(ctx, client, of.Audience); {
	case err != nil:
		return oauth.Clearance{}, err
	case !serves:
		return oauth.Clearance{}, errCalled
	case d.Resource == "":
		d.Resource = of.Audience
	}
	return g.ask(ctx, of, d)
}

// Ask answers a resource server in this process.
func (g *Clearances) Ask(ctx context.Context, token string, d oauth.ClearanceDemand) (oauth.Clearance, error) {
	of, err := g.Tokens.Introspect(ctx, token)
	if err != nil {
		return oauth.Clearance{}, err
	}
	if !of.Active {
		return oauth.Clearance{}, errCalled
	}
	return g.ask(ctx, of, d)
}

func (g *Clearances) ask(
	ctx context.Context, of oauth.Introspection, d oauth.ClearanceDemand,
) (oauth.Clearance, error) {
	if resource, err := oauth.CanonicalResource(d.Resource); err != nil || resource != of.Audience {
		return oauth.Clearance{}, oauth.NewError(oauth.InvalidTarget, "The token was issued for another resource.")
	}
	caller := clearance.Caller{
		ClientID: of.ClientID, GrantID: of.GrantID, NodeID: of.NodeID, Resource: of.Audience,
	}
	if of.GrantID != "" { // otherwise the subject is the client itself
		caller.UserID = of.Subject
	}
	return g.Desk.Ask(ctx, caller, d)
}
