package grant

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/binding"
	"github.com/mcp-authd/mcp-authd/authserver/internal/catalogue"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/keys"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Tokens introspects tokens (RFC 7662) and revokes them (RFC 7009).
type Tokens struct {
	Issuer   string
	Keys     *keys.Manager
	Refresh  *RefreshTokens
	Store    TokenStore
	Catalog  *catalogue.Catalogue
	Bindings binding.Checker
	Audit    *audit.Recorder
	Now      func() time.Time
}

// TokenStore lists the storage methods that Tokens uses.
type TokenStore interface {
	storage.Lookups
	storage.Revocations
	storage.Nodes
}

var errNoToken = oauth.NewError(oauth.InvalidRequest, "The parameter 'token' is missing.")

// typeRefresh is the token_type of a refresh token, so that it cannot be mistaken for a Bearer
// token.
const typeRefresh = "refresh_token"

// IntrospectFor introspects a token for a client: the client's own token, or one for a resource
// that the operator has assigned to the client.
func (t *Tokens) IntrospectFor(ctx context.Context, client storage.Client, token string) (oauth.Introspection, error) {
	if client.Public() { // RFC 7662 §2.1: the endpoint must require authorization
		return oauth.Introspection{},
			oauth.NewError(oauth.InvalidClient, "Introspection needs a client with credentials.")
	}
	if token == "" {
		return oauth.Introspection{}, errNoToken
	}
	answer, err := t.introspect(ctx, token)
	if err != nil {
		return oauth.Introspection{}, err
	}
	// Only the client of a refresh token may introspect it. A resource server could mistake an
	// active refresh token for an access token.
	sees, err := t.maySee(ctx, client, answer)
	if err != nil {
		return oauth.Introspection{}, err
	}
	if answer.Active && !sees || answer.TokenType == typeRefresh && answer.ClientID != client.ID {
		return oauth.Introspection{}, nil // RFC 7662 §4: not visible, so reported as not active
	}
	return answer, nil
}

func (t *Tokens) maySee(ctx context.Context, c storage.Client, answer oauth.Introspection) (bool, error) {
	if answer.ClientID == c.ID || !answer.Active {
		return answer.ClientID == c.ID, nil
	}
	return t.Serves(ctx, c, answer.Audience)
}

// Serves reports whether the operator has assigned a resource, with any of its URLs, to a client.
// Such a client is an MCP server, which may introspect the resource's tokens.
func (t *Tokens) Serves(ctx context.Context, c storage.Client, uri string) (bool, error) {
	if !c.Operated() || c.Public() {
		return false, nil
	}
	if slices.Contains(c.Resources, uri) {
		return true, nil
	}
	resource, known, err := t.Catalog.Lookup(ctx, uri)
	return known && serves(c, resource), err
}

// serves reports whether the operator has assigned a resource to a client, which is then the MCP
// server at all of its URLs.
func serves(c storage.Client, r storage.Resource) bool {
	return slices.Contains(c.Resources, r.Server()) || slices.Contains(c.Resources, r.URI)
}

func (t *Tokens) introspect(ctx context.Context, token string) (oauth.Introspection, error) {
	answer, err := t.Introspect(ctx, token)
	if err != nil || answer.Active {
		return answer, err
	}
	return t.refresh(ctx, token)
}

// Introspect reports whether an access token is active. Revocation takes effect immediately. It
// returns an error if the store, or the user's provider, could not be asked.
func (t *Tokens) Introspect(ctx context.Context, token string) (oauth.Introspection, error) {
	answer, _, err := t.access(ctx, token)
	return answer, err
}

// access also returns the provider session that the token depends on.
func (t *Tokens) access(ctx context.Context, token string) (oauth.Introspection, string, error) {
	claims, err := t.Own(ctx, token)
	switch {
	case errors.Is(err, refusal.ErrUnknownToken):
		return oauth.Introspection{}, "", nil
	case err != nil:
		return oauth.Introspection{}, "", err
	}
	return t.claimed(ctx, claims)
}

// Stands reports whether a token with these claims would be active. It does not prove that such a
// token exists.
func (t *Tokens) Stands(ctx context.Context, claims oauth.AccessTokenClaims) (bool, error) {
	answer, _, err := t.claimed(ctx, claims)
	return answer.Active, err
}

func (t *Tokens) claimed(ctx context.Context, claims oauth.AccessTokenClaims) (oauth.Introspection, string, error) {
	if claims.Expires <= t.Now().Unix() {
		return oauth.Introspection{}, "", nil
	}
	state, resource, err := t.granted(ctx, storage.TokenKey{
		TokenID:  claims.TokenID,
		GrantID:  claims.GrantID,
		NodeID:   claims.NodeID,
		ClientID: claims.ClientID,
		Now:      t.Now(),
	}, claims.Audience)
	if err != nil || !state.Active {
		return oauth.Introspection{}, "", err
	}
	return oauth.Introspection{
		Active:    true,
		Scope:     scopeLeft(claims, state, resource),
		ClientID:  claims.ClientID,
		TokenType: tokenType(claims.Confirmation),
		Expires:   claims.Expires,
		IssuedAt:  claims.IssuedAt,
		NotBefore: claims.IssuedAt,
		Subject:   claims.Subject,
		Audience:  claims.Audience,
		Issuer:    claims.Issuer,
		TokenID:   claims.TokenID,
		GrantID:   claims.GrantID,
		NodeID:    claims.NodeID,
		AuthTime:  claims.AuthTime,
		ACR:       claims.ACR,
		AMR:       claims.AMR,
		Act:       claims.Act,

		ApproveTools: claims.ApproveTools,
		Confirmation: claims.Confirmation,
	}, state.UpstreamID, nil
}

// Revoked reports whether a token that was active has been revoked or paused since, even if it has
// expired. Its key may no longer exist, so the earlier introspection identifies the token.
func (t *Tokens) Revoked(ctx context.Context, of oauth.Introspection) (bool, error) {
	key := storage.TokenKey{
		TokenID:  of.TokenID,
		GrantID:  of.GrantID,
		NodeID:   of.NodeID,
		ClientID: of.ClientID,
		Now:      t.Now(),
	}
	if end := time.Unix(of.Expires, 0); !key.Now.Before(end) {
		key.Now, key.Expired, key.UserID = end.Add(-time.Millisecond), true, of.Subject
	}
	state, _, err := t.granted(ctx, key, of.Audience)
	return !state.Active, err
}

// granted returns the state of a token, and its resource if needed. A token whose provider session
// has ended is not active.
func (t *Tokens) granted(
	ctx context.Context, key storage.TokenKey, audience string,
) (state storage.TokenState, resource storage.Resource, err error) {
	if state, err = t.Store.TokenActive(ctx, key); err != nil {
		return storage.TokenState{}, resource, refusal.Unavailable(err)
	}
	// Removing a resource ends its grants, but not a machine's tokens. Tokens of sub-agents need
	// the resource's scopes.
	if state.Active && (key.GrantID == "" || key.NodeID != "") {
		resource, state.Active, err = t.Catalog.Lookup(ctx, audience)
	}
	if err == nil && state.Active {
		state.Active, err = t.Bindings.Stands(ctx, state.UpstreamID)
	}
	return state, resource, err
}

// scopeLeft returns the scope of a token without scopes that the user has removed from its grant
// since (PE-10).
func scopeLeft(claims oauth.AccessTokenClaims, state storage.TokenState, r storage.Resource) string {
	if claims.GrantID == "" {
		return claims.Scope
	}
	return scopesLeft(claims, state.Scopes, r).String()
}

// scopesLeft returns the scopes of a token that its grant still has. A sub-agent's scope may be
// included in a scope of the grant.
func scopesLeft(claims oauth.AccessTokenClaims, granted oauth.Scopes, r storage.Resource) oauth.Scopes {
	if claims.NodeID != "" {
		granted = policy.Implied(r, granted)
	}
	return oauth.ParseScopes(claims.Scope).Intersect(granted)
}

// Own returns the claims of an access token that this server signed, and refusal.ErrUnknownToken
// for every other token. Expired tokens count, because they name a grant to revoke.
func (t *Tokens) Own(ctx context.Context, token string) (claims oauth.AccessTokenClaims, err error) {
	payload, err := t.Keys.Verify(ctx, token, oauth.AccessTokenType)
	switch {
	case errors.Is(err, keys.ErrVerify):
		return claims, refusal.ErrUnknownToken
	case err != nil:
		return claims, refusal.Unavailable(err)
	case json.Unmarshal(payload, &claims) != nil || claims.Issuer != t.Issuer:
		return oauth.AccessTokenClaims{}, refusal.ErrUnknownToken
	}
	return claims, nil
}

func (t *Tokens) refresh(ctx context.Context, token string) (oauth.Introspection, error) {
	presented, err := t.Refresh.read(ctx, token)
	if errors.Is(err, refusal.ErrUnknownToken) {
		return oauth.Introspection{}, nil
	}
	if err != nil {
		return oauth.Introspection{}, err
	}
	grant, expires, err := t.Store.RefreshToken(ctx, presented.token, t.Now())
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return oauth.Introspection{}, nil
	case err != nil:
		return oauth.Introspection{}, refusal.Unavailable(err)
	}
	if active, err := t.Bindings.Stands(ctx, grant.UpstreamID); err != nil || !active {
		return oauth.Introspection{}, err
	}
	return oauth.Introspection{
		Active:    true,
		Scope:     grant.Scopes.String(),
		ClientID:  grant.ClientID,
		TokenType: typeRefresh,
		Expires:   expires.Unix(),
		Subject:   grant.UserID,
		Audience:  grant.Resource,
		Issuer:    t.Issuer,
		GrantID:   grant.ID,

		Confirmation: Proof{Thumbprint: presented.opened.Key}.Confirmation(),
	}, nil
}

var errNotOwner = oauth.NewError(oauth.UnauthorizedClient, "The token was issued to another client.")

// Revoke revokes the grant of a token of either kind, without the hint (RFC 7009 §2.1). Only the
// client of a token may revoke it. An unknown token is a success, because the client's goal is
// reached (§2.2).
func (t *Tokens) Revoke(ctx context.Context, client storage.Client, token string) error {
	if token == "" {
		return errNoToken
	}
	switch claims, err := t.Own(ctx, token); {
	case err == nil && claims.ClientID != client.ID:
		return errNotOwner
	case err == nil:
		return t.revokeAccess(ctx, claims)
	case !errors.Is(err, refusal.ErrUnknownToken):
		return err
	}
	presented, err := t.Refresh.read(ctx, token)
	if errors.Is(err, refusal.ErrUnknownToken) {
		return nil
	}
	if err != nil {
		return err
	}
	grant, err := t.Store.RevokeRefresh(ctx, presented.token, client.ID, t.Now())
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil
	case errors.Is(err, storage.ErrMismatch):
		return errNotOwner.Because(err)
	case err != nil:
		return refusal.Unavailable(err)
	}
	t.Audit.Record(ctx, audit.TokenRevoked, slog.String("client_id", client.ID), slog.String("kind", "refresh_token"),
		audit.Grant(grant))
	return nil
}

// denialSeen is the minimum time to keep a denial, so that it ends calls which outlast their token.
const denialSeen = time.Minute

// revokeAccess revokes the whole grant (RFC 7009 §2.1 permits it): the client is signing out, and a
// remaining refresh token would undo that. For a sub-agent's token it revokes the node and the
// nodes below it. A machine has no grant; its one token is denied.
func (t *Tokens) revokeAccess(ctx context.Context, claims oauth.AccessTokenClaims) error {
	var err error
	switch {
	case claims.NodeID != "":
		return t.cutHelper(ctx, claims)
	case claims.GrantID != "":
		err = t.Store.RevokeGrant(ctx, claims.GrantID, storage.ByClient, t.Now())
	default:
		until := time.Unix(claims.Expires, 0)
		if seen := t.Now().Add(denialSeen); seen.After(until) {
			until = seen
		}
		err = t.Store.DenyToken(ctx, claims.TokenID, until)
	}
	if err != nil {
		return refusal.Unavailable(err)
	}
	t.Audit.Record(ctx, audit.TokenRevoked, slog.String("client_id", claims.ClientID),
		slog.String("kind", "access_token"), slog.String("grant", claims.GrantID), slog.String("user", claims.Subject))
	return nil
}

func (t *Tokens) cutHelper(ctx context.Context, claims oauth.AccessTokenClaims) error {
	node, err := t.Store.CutNode(ctx, claims.NodeID, claims.GrantID, t.Now())
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil // expired
	case err != nil:
		return refusal.Unavailable(err)
	}
	t.Audit.Record(ctx, audit.HelperCut, slog.String("client_id", claims.ClientID), slog.String("user", claims.Subject),
		slog.String("grant", claims.GrantID), audit.Node(node), slog.String("revoked_by", string(storage.ByClient)))
	return nil
}
