package authserver

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/ory/fosite"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/policy"
	"github.com/mcp-authd/mcp-authd/storage"
)

// machineGrant is the client credentials grant (OAuth 2.1 §4.2, AS-173): a confidential
// client acts for itself, within what the operator registered. There is no refresh
// token and nothing is stored.
type machineGrant struct{ *Server }

// CanSkipClientAuth implements fosite.TokenEndpointHandler.
func (*machineGrant) CanSkipClientAuth(context.Context, fosite.AccessRequester) bool { return false }

// CanHandleTokenEndpointRequest implements fosite.TokenEndpointHandler.
func (*machineGrant) CanHandleTokenEndpointRequest(_ context.Context, r fosite.AccessRequester) bool {
	return r.GetGrantTypes().ExactOne(grantMachine)
}

// HandleTokenEndpointRequest decides what the client may have.
func (g *machineGrant) HandleTokenEndpointRequest(ctx context.Context, r fosite.AccessRequester) error {
	client := r.GetClient().(*shellClient)
	if client.Public() || !client.may(grantMachine) {
		return oauth.NewError(oauth.UnauthorizedClient, "The client is not registered for the client credentials grant.")
	}
	p := form.New(r.GetRequestForm())
	resource, err := g.machineResource(ctx, client, p)
	if err != nil {
		return err
	}
	registered := client.Scopes
	if !client.Operated() {
		registered = nil // what it claims for itself is no limit; it gets the defaults
	}
	scopes, err := policy.Machine(resource.Resource, registered, oauth.ParseScopes(p.Get("scope")))
	if err != nil {
		return err
	}
	now := g.cfg.Now()
	return g.issue(ctx, issuance{
		grant:  storage.Grant{ClientID: client.ID, Resource: resource.URI, ExpiresAt: now.Add(g.cfg.Tokens.AccessTTL)},
		scopes: scopes, issuedAt: now, event: audit.TokenIssued,
	})
}

// machineResource is the resource that the request means, within those the client
// is registered for; when it names none, the first of those.
func (g *machineGrant) machineResource(ctx context.Context, client *shellClient, p form.Params) (policy.Resolution, error) {
	catalog, err := g.catalog.Load(ctx)
	if err != nil {
		return policy.Resolution{}, refusal.Unavailable(err)
	}
	requested := p.Resources()
	if len(requested) == 0 && len(client.Resources) > 0 {
		requested = client.Resources[:1]
	}
	audit.Note(ctx, slog.String("resource", strings.Join(requested, " "))) // as it was asked for
	resource, err := catalog.Resolve(requested)
	if err == nil && len(client.Resources) > 0 && !slices.Contains(client.Resources, resource.URI) {
		err = oauth.NewError(oauth.InvalidTarget, "The client is not registered for the requested resource.")
	}
	audit.Note(ctx, slog.String("resource", resource.URI), slog.String("resource_match", resource.Match))
	return resource, err
}

// PopulateTokenEndpointResponse implements fosite.TokenEndpointHandler.
func (g *machineGrant) PopulateTokenEndpointResponse(ctx context.Context, r fosite.AccessRequester, resp fosite.AccessResponder) error {
	return populate(ctx, g.CanHandleTokenEndpointRequest(ctx, r), resp)
}
