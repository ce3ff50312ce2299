package authserver

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/ory/fosite"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

const (
	grantPrefix   = "grt_"
	codePrefix    = "mcpac_"
	refreshPrefix = "mcprt_"
)

// codeOf returns a new code for a grant: it begins with the grant's id, by which the store
// finds it, and has 256 random bits.
func codeOf(grantID string) string {
	return secrets.Token(codePrefix + strings.TrimPrefix(grantID, grantPrefix))
}

// grantOf returns the grant that a code names, "" for one of an earlier version, which are
// random as a whole.
func grantOf(code string) string {
	named, ok := strings.CutPrefix(code, codePrefix)
	if named = named[:max(0, len(named)-secrets.TokenSize)]; !ok || named == "" {
		return ""
	}
	return grantPrefix + named
}

// codeGrant is the authorization code grant with PKCE (OAuth 2.1 §4.1), at both
// endpoints.
type codeGrant struct{ *Server }

// HandleAuthorizeEndpointRequest creates the grant and its code, in one storage
// call, from the approval in the session.
func (g *codeGrant) HandleAuthorizeEndpointRequest(ctx context.Context, ar fosite.AuthorizeRequester, resp fosite.AuthorizeResponder) error {
	ap := ar.GetSession().(*shellSession).approval
	now := g.cfg.Now()
	id := secrets.ID(grantPrefix)
	code := codeOf(id)
	client := ap.client
	err := g.cfg.Store.Approve(ctx, storage.Approval{
		Session: ap.session,
		Client:  &client, Place: oauth.RedirectPlace(ap.redirectURI), Material: client.Material(), Unplaced: client.Operated(),
		Remembered: ap.remembered,
		Grant: storage.Grant{
			ID: id, ClientID: client.ID, UserID: ap.userID,
			Scopes: ap.scopes, Resource: ap.resource.URI, AuthTime: ap.authTime,
			CreatedAt: now, ExpiresAt: now.Add(g.cfg.Tokens.RefreshMaxTTL),
		},
		Code: storage.Code{Hash: secrets.Hash(code), RedirectURI: ap.sent, Challenge: ap.challenge, ExpiresAt: now.Add(g.cfg.Tokens.CodeTTL)},
		Now:  now,
	})
	switch {
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrChanged):
		return err
	case errors.Is(err, storage.ErrRevoked):
		return oauth.NewError(oauth.UnauthorizedClient, "The client was removed.").Because(err)
	case err != nil:
		return refusal.Unavailable(err)
	}
	g.cfg.Audit.Record(ctx, audit.ConsentApproved, slog.String("user", ap.userID), slog.String("client_id", client.ID),
		slog.String("resource", ap.resource.URI), slog.String("scope", ap.scopes.String()))
	resp.AddParameter("code", code)
	ar.SetResponseTypeHandled("code")
	return nil
}

// CanSkipClientAuth implements fosite.TokenEndpointHandler.
func (*codeGrant) CanSkipClientAuth(context.Context, fosite.AccessRequester) bool { return false }

// CanHandleTokenEndpointRequest implements fosite.TokenEndpointHandler.
func (*codeGrant) CanHandleTokenEndpointRequest(_ context.Context, r fosite.AccessRequester) bool {
	return r.GetGrantTypes().ExactOne(grantCode)
}

// HandleTokenEndpointRequest redeems the code (OAuth 2.1 §4.1.3). Client, redirect
// URI and challenge are compared by the statement that consumes the code: a request
// that does not match leaves it untouched.
func (g *codeGrant) HandleTokenEndpointRequest(ctx context.Context, r fosite.AccessRequester) error {
	client := r.GetClient().(*shellClient)
	p := form.New(r.GetRequestForm())
	if !client.may(grantCode) {
		return oauth.NewError(oauth.UnauthorizedClient, "The client is not registered for the authorization code grant.")
	}
	code, verifier := p.Get("code"), p.Get("code_verifier")
	switch {
	case code == "":
		return oauth.NewError(oauth.InvalidRequest, "The parameter 'code' is missing.")
	case !oauth.ValidVerifier(verifier): // RFC 7636 §4.6; OAuth 2.1 §4.1.3
		return oauth.NewError(oauth.InvalidGrant, "The parameter 'code_verifier' is missing or malformed.")
	}
	resource, err := g.tokenResource(ctx, p)
	if err != nil {
		return err
	}
	now := g.cfg.Now()
	first := g.newRefresh(now)
	redeemed, err := g.cfg.Store.RedeemCode(ctx, storage.RedeemCode{
		Hash: secrets.Hash(code), GrantID: grantOf(code), ClientID: client.ID, Challenge: oauth.ChallengeS256(verifier),
		RedirectURI: p.Get("redirect_uri"), Resource: resource,
		Refresh: &first.Refresh,
		Now:     now,
	})
	grant := redeemed.Grant
	audit.Note(ctx, audit.Grant(grant))
	if err != nil {
		return g.redeemError(ctx, client.ID, grant, err)
	}
	if !g.bindings.Honours(grant.UpstreamID) {
		return errCode
	}
	refresh := "" // made good but not handed out: what the scope is, only the code knew
	if client.may(grantRefresh) || grant.Scopes.Has(oauth.OfflineAccess) {
		refresh = g.firstRefresh(first.seed, grant.ID, redeemed.Generation, now)
	}
	return g.issue(ctx, issuance{grant: grant, scopes: grant.Scopes, refresh: refresh, issuedAt: now, event: audit.TokenIssued})
}

var errCode = oauth.NewError(oauth.InvalidGrant, "The authorization code is not valid: it is unknown, expired, used, or was issued for another request.")

// redeemError tells a client that its code is no good, without saying why: whoever
// presents a wrong code must not learn which part was wrong.
func (g *codeGrant) redeemError(ctx context.Context, clientID string, grant storage.Grant, err error) error {
	switch {
	case errors.Is(err, storage.ErrSpent):
		g.cfg.Audit.Record(ctx, audit.TokenReuse, slog.String("kind", "code"), slog.String("client_id", clientID), slog.String("grant", grant.ID))
		return errCode.Because(err)
	case errors.Is(err, storage.ErrResource):
		return errOtherResource.Because(err)
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrMismatch), errors.Is(err, storage.ErrExpired), errors.Is(err, storage.ErrRevoked):
		return errCode.Because(err)
	}
	return refusal.Unavailable(err)
}

// PopulateTokenEndpointResponse implements fosite.TokenEndpointHandler.
func (g *codeGrant) PopulateTokenEndpointResponse(ctx context.Context, r fosite.AccessRequester, resp fosite.AccessResponder) error {
	return populate(ctx, g.CanHandleTokenEndpointRequest(ctx, r), resp)
}
