package authserver

import (
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"time"

	"github.com/ory/fosite"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/policy"
	"github.com/mcp-authd/mcp-authd/storage"
)

// refreshGrant rotates refresh tokens (OAuth 2.1 §4.3). A refresh token is spent by
// its first use. Clients that refresh in parallel, or lose the reply and try again,
// get the very same reply within the grace window: the successor is kept sealed
// beside the spent token, and the access token is minted again from the same inputs
// with a deterministic signature. After the window, a second use means that two
// parties hold the token, and the whole grant is revoked.
type refreshGrant struct{ *Server }

const purposeSuccessor = "refresh successor"

var errRefresh = oauth.NewError(oauth.InvalidGrant, "The refresh token is not valid: it is unknown, expired, used or revoked.")

// CanSkipClientAuth implements fosite.TokenEndpointHandler.
func (*refreshGrant) CanSkipClientAuth(context.Context, fosite.AccessRequester) bool { return false }

// CanHandleTokenEndpointRequest implements fosite.TokenEndpointHandler.
func (*refreshGrant) CanHandleTokenEndpointRequest(_ context.Context, r fosite.AccessRequester) bool {
	return r.GetGrantTypes().ExactOne(grantRefresh)
}

// HandleTokenEndpointRequest rotates the token, in one storage call. Only a request
// that names scopes, or may rest on a session at a provider, costs a read before it, so
// that asking for too much, or at the wrong time, does not spend the token.
func (g *refreshGrant) HandleTokenEndpointRequest(ctx context.Context, r fosite.AccessRequester) error {
	client := r.GetClient().(*shellClient)
	p := newParams(r.GetRequestForm())
	token := p.get("refresh_token")
	switch {
	case !client.may(grantRefresh) && !client.may(grantCode):
		return oauth.NewError(oauth.UnauthorizedClient, "The client is not registered for the refresh token grant.")
	case token == "":
		return oauth.NewError(oauth.InvalidRequest, "The parameter 'refresh_token' is missing.")
	}
	resource, err := g.tokenResource(ctx, p)
	if err != nil {
		return err
	}
	hash := secrets.Hash(token)
	if err := g.precheck(ctx, hash, client.ID, p); err != nil {
		return err
	}
	return g.rotate(ctx, client.ID, hash, resource, p)
}

// refreshMaxAge is how old a provider's last word may be when tokens are refreshed
// (AS-218). Parallel refreshes share one answer.
const refreshMaxAge = 10 * time.Second

// precheck refuses, before anything is spent, a request for scopes beyond the grant, and
// one whose session at a provider has ended or cannot be asked about.
func (g *refreshGrant) precheck(ctx context.Context, hash storage.Hash, clientID string, p params) error {
	if p.get("scope") == "" && g.cfg.Bindings == nil {
		return nil
	}
	grant, _, err := g.cfg.Store.RefreshToken(ctx, hash, g.cfg.Now())
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil // spent, expired or unknown: rotate knows which
	case err != nil:
		return unavailable(err)
	case grant.ClientID != clientID:
		return nil
	}
	audit.Note(ctx, audit.Grant(grant))
	switch err := g.checkBinding(ctx, grant.UpstreamID, refreshMaxAge); {
	case errors.Is(err, storage.ErrRevoked):
		return errRefresh.Because(err)
	case err != nil:
		return err
	}
	_, err = g.narrow(ctx, grant, p)
	return err
}

func (g *refreshGrant) narrow(ctx context.Context, grant storage.Grant, p params) (oauth.Scopes, error) {
	catalog, err := g.catalog.load(ctx)
	if err != nil {
		return nil, unavailable(err)
	}
	resource, ok := catalog.Lookup(grant.Resource)
	if !ok {
		return nil, errRefresh // the resource was removed
	}
	scopes, err := policy.Narrow(grant.Scopes, oauth.ParseScopes(p.get("scope")), policy.ResourceScopes(resource))
	if err != nil {
		return nil, err
	}
	// Nothing left means that the person has to ask again, and is told why there.
	if scopes, err = g.permit(ctx, grant.UpstreamID, resource, scopes); errors.Is(err, errNoScopes) || errors.Is(err, storage.ErrRevoked) {
		return nil, errRefresh.Because(err)
	}
	return scopes, err
}

func (g *refreshGrant) rotate(ctx context.Context, clientID string, hash storage.Hash, resource string, p params) error {
	now := g.cfg.Now()
	successor := secrets.Token(refreshPrefix)
	rotation, err := g.cfg.Store.RotateRefresh(ctx, storage.RotateRefresh{
		Hash: hash, ClientID: clientID, Resource: resource, Grace: g.cfg.Tokens.RefreshGrace, Now: now,
		Next:   storage.Refresh{Hash: secrets.Hash(successor), ExpiresAt: now.Add(g.cfg.Tokens.RefreshIdleTTL)},
		Sealed: g.ring.Seal(purposeSuccessor, []byte(successor), hash[:]),
	})
	audit.Note(ctx, audit.Grant(rotation.Grant))
	if err != nil {
		return g.rotateError(ctx, clientID, rotation, err)
	}
	scopes, err := g.narrow(ctx, rotation.Grant, p)
	if err != nil {
		return err
	}
	i := issuance{grant: rotation.Grant, scopes: scopes, refresh: successor, issuedAt: rotation.RotatedAt, event: audit.TokenRefreshed}
	if rotation.Replayed {
		opened, err := g.ring.Open(purposeSuccessor, rotation.Sealed, hash[:])
		if err != nil {
			return errRefresh.Because(err)
		}
		i.refresh, i.event = string(opened), audit.TokenReplayed
	}
	i.tokenID = g.replayableID(hash, scopes)
	return g.issue(ctx, i)
}

// replayableID is the jti of the access token that a refresh token turns into: the
// same for a replay, and unguessable without the master key.
func (g *refreshGrant) replayableID(hash storage.Hash, scopes oauth.Scopes) string {
	mac := g.ring.MAC("access token id", append(hash[:], scopes.String()...))
	return base64.RawURLEncoding.EncodeToString(mac[:20])
}

func (g *refreshGrant) rotateError(ctx context.Context, clientID string, rotation storage.Rotation, err error) error {
	switch {
	case errors.Is(err, storage.ErrSpent):
		g.cfg.Audit.Record(ctx, audit.TokenReuse, slog.String("kind", "refresh_token"),
			slog.String("client_id", clientID), slog.String("grant", rotation.Grant.ID))
		return errRefresh.Because(err)
	case errors.Is(err, storage.ErrResource):
		return errOtherResource.Because(err)
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrMismatch), errors.Is(err, storage.ErrExpired), errors.Is(err, storage.ErrRevoked):
		return errRefresh.Because(err)
	}
	return unavailable(err)
}

// PopulateTokenEndpointResponse implements fosite.TokenEndpointHandler.
func (g *refreshGrant) PopulateTokenEndpointResponse(ctx context.Context, r fosite.AccessRequester, resp fosite.AccessResponder) error {
	return populate(ctx, g.CanHandleTokenEndpointRequest(ctx, r), resp)
}
