package authserver

import (
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"time"

	"github.com/ory/fosite"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/policy"
	"github.com/mcp-authd/mcp-authd/storage"
)

// refreshGrant rotates refresh tokens (OAuth 2.1 §4.3). A refresh token is spent by
// its first use. Clients that refresh in parallel, or lose the reply and try again,
// get the very same reply within the grace window: the successor is made again from the
// spent token and the time of its rotation, and the access token is minted again from the
// same inputs with a deterministic signature. After the window, a second use means that
// two parties hold the token, and the whole grant is revoked.
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
	p := form.New(r.GetRequestForm())
	token := p.Get("refresh_token")
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
	presented, err := g.readRefresh(ctx, token)
	if errors.Is(err, storage.ErrNotFound) {
		return errRefresh.Because(err)
	}
	if err != nil {
		return err
	}
	if err := g.precheck(ctx, presented.token, client.ID, p); err != nil {
		return err
	}
	return g.rotate(ctx, client.ID, presented, resource, p)
}

// refreshMaxAge is how old a provider's last word may be when tokens are refreshed
// (AS-218). Parallel refreshes share one answer.
const refreshMaxAge = 10 * time.Second

// precheck refuses, before anything is spent, a request for scopes beyond the grant, and
// one whose session at a provider has ended or cannot be asked about.
func (g *refreshGrant) precheck(ctx context.Context, token storage.PresentedRefresh, clientID string, p form.Params) error {
	if p.Get("scope") == "" && g.cfg.Bindings == nil {
		return nil
	}
	grant, _, err := g.cfg.Store.RefreshToken(ctx, token, g.cfg.Now())
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil // spent, expired or unknown: rotate knows which
	case err != nil:
		return refusal.Unavailable(err)
	case grant.ClientID != clientID:
		return nil
	}
	audit.Note(ctx, audit.Grant(grant))
	switch err := g.bindings.Check(ctx, grant.UpstreamID, refreshMaxAge); {
	case errors.Is(err, storage.ErrRevoked):
		return errRefresh.Because(err)
	case err != nil:
		return err
	}
	_, err = g.narrow(ctx, grant, p)
	return err
}

func (g *refreshGrant) narrow(ctx context.Context, grant storage.Grant, p form.Params) (oauth.Scopes, error) {
	catalog, err := g.catalog.Load(ctx)
	if err != nil {
		return nil, refusal.Unavailable(err)
	}
	resource, ok := catalog.Lookup(grant.Resource)
	if !ok {
		return nil, errRefresh // the resource was removed
	}
	scopes, err := policy.Narrow(grant.Scopes, oauth.ParseScopes(p.Get("scope")), policy.ResourceScopes(resource))
	if err != nil {
		return nil, err
	}
	// Nothing left means that the person has to ask again, and is told why there.
	if scopes, err = g.bindings.Permit(ctx, grant.UpstreamID, resource, scopes); errors.Is(err, refusal.ErrNoScopes) || errors.Is(err, storage.ErrRevoked) {
		return nil, errRefresh.Because(err)
	}
	return scopes, err
}

func (g *refreshGrant) rotate(ctx context.Context, clientID string, presented presentedRefresh, resource string, p form.Params) error {
	now := g.cfg.Now()
	next := g.newRefresh(now)
	rotation, err := g.cfg.Store.RotateRefresh(ctx, storage.RotateRefresh{
		Token: presented.token, ClientID: clientID, Resource: resource, Grace: g.cfg.Tokens.RefreshGrace, Now: now,
		Next: next.Refresh, Sealed: g.sealSeed(presented, next),
	})
	audit.Note(ctx, audit.Grant(rotation.Grant))
	if err != nil {
		return g.rotateError(ctx, clientID, rotation, err)
	}
	scopes, err := g.narrow(ctx, rotation.Grant, p)
	if err != nil {
		return err
	}
	i := issuance{grant: rotation.Grant, scopes: scopes, issuedAt: rotation.RotatedAt, event: refreshEvent(rotation)}
	if i.refresh, err = g.successor(presented, next, rotation); err != nil {
		return errRefresh.Because(err)
	}
	i.tokenID = g.replayableID(presented.digest, scopes)
	return g.issue(ctx, i)
}

// successor is the refresh token that a rotation has made good, the same for a replay.
func (g *refreshGrant) successor(presented presentedRefresh, next nextRefresh, rotation storage.Rotation) (string, error) {
	if _, ok := presented.token.(storage.NumberedRefresh); ok {
		return presented.opened.successor(rotation.RotatedAt).compose(g.keys.TokenKey()), nil
	}
	seed := next.seed
	if rotation.Replayed {
		opened, err := g.ring.Open(purposeSuccessor, rotation.Sealed, presented.digest[:])
		if err != nil {
			return "", err
		}
		seed = string(opened)
	}
	return g.firstRefresh(seed, rotation.Grant.ID, rotation.Generation, rotation.RotatedAt), nil
}

// sealSeed keeps what the successor of a token with a row is made from, for replays.
func (g *refreshGrant) sealSeed(presented presentedRefresh, next nextRefresh) []byte {
	if _, ok := presented.token.(storage.HashedRefresh); !ok {
		return nil
	}
	return g.ring.Seal(purposeSuccessor, []byte(next.seed), presented.digest[:])
}

func refreshEvent(r storage.Rotation) string {
	switch {
	case r.Replayed:
		return audit.TokenReplayed
	case r.Recovered:
		return audit.TokenRecovered
	}
	return audit.TokenRefreshed
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
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrMismatch), errors.Is(err, storage.ErrExpired),
		errors.Is(err, storage.ErrSuperseded), errors.Is(err, storage.ErrRevoked):
		return errRefresh.Because(err)
	}
	return refusal.Unavailable(err)
}

// PopulateTokenEndpointResponse implements fosite.TokenEndpointHandler.
func (g *refreshGrant) PopulateTokenEndpointResponse(ctx context.Context, r fosite.AccessRequester, resp fosite.AccessResponder) error {
	return populate(ctx, g.CanHandleTokenEndpointRequest(ctx, r), resp)
}
