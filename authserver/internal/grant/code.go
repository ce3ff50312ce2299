package grant

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/binding"
	"github.com/mcp-authd/mcp-authd/authserver/internal/catalogue"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Code is the authorization code grant with PKCE (OAuth 2.1 §4.1) at the token endpoint.
type Code struct {
	Store    CodeStore
	Catalog  *catalogue.Catalogue
	Bindings binding.Checker
	Refresh  *RefreshTokens
	Minter   *Minter
	IDTokens *IDTokens
}

// CodeStore lists the storage methods that Code uses.
type CodeStore interface {
	storage.Redemptions
	Grant(ctx context.Context, id string) (storage.Grant, error)
}

// Reply redeems the code (OAuth 2.1 §4.1.3). The statement that uses up the code compares client,
// redirect URI and challenge, so a request that does not match leaves the code valid.
func (g *Code) Reply(ctx context.Context, client storage.Client, r TokenRequest) (*oauth.TokenResponse, error) {
	switch {
	case !may(client, oauth.GrantCode):
		return nil, oauth.NewError(oauth.UnauthorizedClient, // AS-85
			"The client is not registered for the authorization code grant.")
	case r.Code == "":
		return nil, oauth.NewError(oauth.InvalidRequest, "The parameter 'code' is missing.")
	case !oauth.ValidVerifier(r.Verifier): // RFC 7636 §4.6; OAuth 2.1 §4.1.3
		return nil, oauth.NewError(oauth.InvalidGrant, "The parameter 'code_verifier' is missing or malformed.")
	}
	resource, err := g.Catalog.Named(ctx, r.Resources)
	if err == nil {
		err = g.demand(ctx, client, resource, r)
	}
	if err != nil {
		return nil, err
	}
	challenge := oauth.ChallengeS256(r.Verifier) // AS-64, AS-65: the store compares
	if isBound(r.Code) {
		if !r.Proof.Given() {
			return nil, errCodeProof
		}
		challenge = boundChallenge(challenge, r.Proof.Thumbprint) // AS-215
	}
	reply, grant, err := g.redeem(ctx, client, storage.RedeemCode{
		Hash:        secrets.Hash(r.Code),
		GrantID:     grantOf(r.Code),
		Challenge:   challenge,
		RedirectURI: r.RedirectURI,
		Resource:    resource,
		From:        r.From,
	}, r.Proof)
	if err == nil {
		reply.IDToken, err = g.IDTokens.issue(ctx, grant, nonceOf(r.Code), g.Minter.Now())
	}
	return reply, err
}

// demand refuses a request without a required DPoP proof before the code is used up (AS-213). If
// the request names no resource and some resources require proofs, it reads the code's grant.
func (g *Code) demand(ctx context.Context, client storage.Client, resource string, r TokenRequest) error {
	if err := g.Minter.Demand(ctx, resource, r.Proof); err != nil || resource != "" || r.Proof.Given() {
		return err
	}
	some, _, err := g.Catalog.DemandProofs(ctx)
	if err != nil || !some || grantOf(r.Code) == "" {
		return err
	}
	grant, err := g.Store.Grant(ctx, grantOf(r.Code))
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil // the redeeming statement returns the precise error
	case err != nil:
		return refusal.Unavailable(err)
	case grant.ClientID != client.ID:
		return nil
	}
	return g.Minter.Demand(ctx, grant.Resource, r.Proof)
}

// redeem exchanges a code for tokens, and returns its grant.
func (g *Code) redeem(
	ctx context.Context, client storage.Client, r storage.RedeemCode, proof Proof,
) (*oauth.TokenResponse, storage.Grant, error) {
	now := g.Minter.Now()
	first := g.Refresh.next(now)
	r.ClientID, r.Refresh, r.Now = client.ID, &first.Refresh, now
	redeemed, err := g.Store.RedeemCode(ctx, r)
	grant := redeemed.Grant
	request.Of(ctx).Note(audit.Grant(grant))
	if err != nil {
		return nil, grant, g.redeemError(ctx, client.ID, grant, err)
	}
	if !g.Bindings.Honours(grant.UpstreamID) {
		return nil, grant, errCode
	}
	scopes, until, err := g.proved(ctx, grant, now)
	if err != nil {
		return nil, grant, err
	}
	refresh := "" // valid but not handed out: only the code contained the scope
	if may(client, oauth.GrantRefresh) || grant.Scopes.Has(oauth.OfflineAccess) {
		refresh = g.Refresh.first(first.seed, grant.ID, redeemed.Generation, now, refreshKey(client, proof))
	}
	reply, err := g.Minter.issue(ctx, issuance{
		grant: grant, scopes: scopes, until: until, refresh: refresh, issuedAt: now, event: audit.TokenIssued,
		proof: proof,
	})
	return reply, grant, err
}

// refreshKey returns the key to bind a client's refresh token to. A public client's token is
// useless without the key; other clients have credentials (RFC 9449 §5, AS-102).
func refreshKey(client storage.Client, proof Proof) string {
	if client.Public() {
		return proof.Thumbprint
	}
	return ""
}

// proved returns the scopes of a grant that the user's authentication still allows. A device may
// redeem late.
func (g *Code) proved(
	ctx context.Context, grant storage.Grant, now time.Time,
) (scopes oauth.Scopes, until time.Time, err error) {
	resource, ok, err := g.Catalog.Lookup(ctx, grant.Resource)
	if err != nil || !ok {
		return grant.Scopes, until, err
	}
	if scopes, until, err = proved(ctx, grant, resource, grant.Scopes, now); err != nil {
		err = errCode.Because(err)
	}
	return scopes, until, err
}

var errCode = oauth.NewError(oauth.InvalidGrant,
	"The authorization code is not valid: it is unknown, expired, used, or was issued for another request.")

// redeemError returns one error for all invalid codes: a client with a wrong code must not learn
// which part was wrong.
func (g *Code) redeemError(ctx context.Context, clientID string, grant storage.Grant, err error) error {
	switch {
	case errors.Is(err, storage.ErrSpent):
		g.Minter.Audit.Record(ctx, audit.TokenReuse, slog.String("kind", "code"),
			slog.String("client_id", clientID), slog.String("grant", grant.ID))
		return errCode.Because(err)
	case errors.Is(err, storage.ErrResource):
		return errOtherResource.Because(err)
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrMismatch),
		errors.Is(err, storage.ErrExpired), errors.Is(err, storage.ErrRevoked):
		return errCode.Because(err)
	}
	return refusal.Unavailable(err)
}
