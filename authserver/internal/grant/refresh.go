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
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Refresh rotates refresh tokens (OAuth 2.1 §4.3). The first use spends a refresh token. Clients
// that refresh in parallel, or lose the reply and try again, get the same reply within the grace
// period. The successor is computed again from the spent token and the time of its rotation. The
// access token is signed again from the same inputs with a deterministic signature. For a token
// whose successor was not used, store outages do not count toward the grace period. After it, a
// second use means that two parties hold the token, and the whole grant is revoked.
type Refresh struct {
	Store    RefreshStore
	Catalog  *catalogue.Catalogue
	Bindings binding.Checker
	Tokens   *RefreshTokens
	Minter   *Minter
	Grace    time.Duration
	Outages  *Outages // Grace does not run during these
}

// RefreshStore lists the storage methods that Refresh uses.
type RefreshStore interface {
	storage.Redemptions
	storage.Lookups
	// User is storage.Users.User.
	User(ctx context.Context, id string) (storage.User, error)
}

var errRefresh = oauth.NewError(oauth.InvalidGrant,
	"The refresh token is not valid: it is unknown, expired, used or revoked.")

// Reply rotates the token in one storage call. It reads the store before that only if the request
// names scopes, may depend on a provider session, or lacks a proof. So a request for too much, or
// at the wrong time, does not spend the token.
func (g *Refresh) Reply(ctx context.Context, client storage.Client, r TokenRequest) (*oauth.TokenResponse, error) {
	switch {
	case !may(client, oauth.GrantRefresh) && !may(client, oauth.GrantCode) && !may(client, oauth.GrantDeviceCode):
		return nil, oauth.NewError(oauth.UnauthorizedClient, // AS-85
			"The client is not registered for the refresh token grant.")
	case r.RefreshToken == "":
		return nil, oauth.NewError(oauth.InvalidRequest, "The parameter 'refresh_token' is missing.")
	}
	resource, err := g.Catalog.Named(ctx, r.Resources)
	if err != nil {
		return nil, err
	}
	if err := g.Minter.Demand(ctx, resource, r.Proof); err != nil {
		return nil, err
	}
	presented, err := g.Tokens.read(ctx, r.RefreshToken)
	if errors.Is(err, refusal.ErrUnknownToken) {
		return nil, errRefresh.Because(err)
	}
	if err != nil {
		return nil, err
	}
	if err := presented.heldBy(r.Proof); err != nil {
		return nil, err // before the token is spent (AS-241)
	}
	before, err := g.precheck(ctx, presented.token, client.ID, resource, r)
	if err != nil {
		return nil, err
	}
	return g.rotate(ctx, client.ID, presented, resource, r, before)
}

// refreshMaxAge is the maximum age of a provider's answer at a refresh (AS-218). Parallel refreshes
// share one answer.
const refreshMaxAge = 10 * time.Second

// scoping is the result of the scope check of a refresh.
type scoping struct {
	requested oauth.Scopes
	scopes    oauth.Scopes // known only if precheck read the grant
	until     time.Time    // how long the user's authentication allows them; zero: as long as the grant lives
	known     bool
}

// precheck refuses requests before the token is spent: for scopes beyond the grant, with a provider
// session that has ended or cannot be checked, or without the proof that the resource requires.
// resource may be "".
func (g *Refresh) precheck(
	ctx context.Context, token storage.PresentedRefresh, clientID, resource string, r TokenRequest,
) (scoping, error) {
	s, demanding := scoping{requested: r.Scopes}, false
	if resource == "" && !r.Proof.Given() {
		var err error
		if demanding, _, err = g.Catalog.DemandProofs(ctx); err != nil {
			return s, err
		}
	}
	narrows, err := g.Bindings.Narrows(ctx)
	if err != nil {
		return s, err
	}
	if len(r.Scopes) == 0 && !narrows && !demanding {
		return s, nil
	}
	grant, _, err := g.Store.RefreshToken(ctx, token, g.Minter.Now())
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return s, nil // spent, expired or unknown: rotate returns the precise error
	case err != nil:
		return s, refusal.Unavailable(err)
	case grant.ClientID != clientID:
		return s, nil
	}
	request.Of(ctx).Note(audit.Grant(grant))
	if err := g.Minter.Demand(ctx, grant.Resource, r.Proof); err != nil {
		return s, err
	}
	switch err := g.Bindings.Check(ctx, grant.UpstreamID, refreshMaxAge); {
	case errors.Is(err, storage.ErrRevoked):
		return s, errRefresh.Because(err)
	case err != nil:
		return s, err
	}
	return g.narrow(ctx, grant, r.Scopes)
}

func (g *Refresh) narrow(ctx context.Context, grant storage.Grant, requested oauth.Scopes) (s scoping, err error) {
	s.requested = requested
	resource, ok, err := g.Catalog.Lookup(ctx, grant.Resource)
	if err != nil {
		return s, err
	}
	if !ok {
		return s, errRefresh // the resource was removed
	}
	if resource.Own {
		if err := g.administers(ctx, grant.UserID); err != nil {
			return s, err
		}
	}
	if !grant.NarrowedAt.IsZero() {
		// Many clients request their original scopes each time. They keep the remaining ones.
		requested = requested.Intersect(grant.Scopes)
	}
	scopes, err := policy.Narrow(grant.Scopes, requested, policy.ResourceScopes(resource))
	if err != nil {
		return s, err
	}
	// If no scope is left, the user has to ask again; the page gives the reason.
	scopes, err = g.Bindings.Permit(ctx, binding.Of(grant), resource, scopes)
	if errors.Is(err, refusal.ErrNoScopes) || errors.Is(err, storage.ErrRevoked) {
		return s, errRefresh.Because(err)
	}
	if err != nil {
		return s, err
	}
	if s.scopes, s.until, err = proved(ctx, grant, resource, scopes, g.Minter.Now()); err != nil {
		return s, errRefresh.Because(err)
	}
	s.known = true
	return s, nil
}

// administers refuses a user who has lost their role. The administration of this server requires
// one (OB-10).
func (g *Refresh) administers(ctx context.Context, userID string) error {
	user, err := g.Store.User(ctx, userID)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return errRefresh.Because(err)
	case err != nil:
		return refusal.Unavailable(err)
	case user.Role == "":
		return errRefresh.Because(errNoRole)
	}
	return nil
}

var errNoRole = errors.New("the person has no role any more, and administers nothing")

func (g *Refresh) rotate(
	ctx context.Context, clientID string, presented presentedRefresh, resource string, r TokenRequest, s scoping,
) (*oauth.TokenResponse, error) {
	now := g.Minter.Now()
	next := g.Tokens.next(now)
	rotation, err := g.Store.RotateRefresh(ctx, storage.RotateRefresh{
		Token:    presented.token,
		ClientID: clientID,
		Resource: resource,
		Grace:    g.Grace,
		Outage:   g.Outages.Extension(g.Grace, now),
		Now:      now,
		Next:     next.Refresh,
		Sealed:   g.Tokens.sealSeed(presented, next),
		From:     r.From,
	})
	g.Outages.Observe(now, g.Minter.Now(), err)
	request.Of(ctx).Note(audit.Grant(rotation.Grant))
	if err != nil {
		return nil, g.rotateError(ctx, clientID, rotation, err)
	}
	// Checks that were skipped before run now. Either this is a replay, or the store had lost the
	// token; then the client may ask again within the grace period. Or the request names no scopes
	// and depends on no provider. It then fails only if the resource or all its scopes are no
	// longer served, so that no token would be usable.
	if !s.known {
		if s, err = g.narrow(ctx, rotation.Grant, s.requested); err != nil {
			return nil, err
		}
	}
	refresh, err := g.Tokens.successor(presented, next, rotation)
	if err != nil {
		return nil, errRefresh.Because(err)
	}
	reply := issuance{
		grant:    rotation.Grant,
		scopes:   s.scopes,
		until:    s.until,
		refresh:  refresh,
		issuedAt: rotation.RotatedAt,
		tokenID:  g.Tokens.replayableID(presented.digest, s.scopes, r.Proof),
		proof:    r.Proof,
		event:    refreshEvent(rotation),
	}
	if rotation.Replayed && now.Sub(rotation.RotatedAt) >= g.Grace {
		reply.issuedAt, reply.tokenID = now, "" // the access token issued before the outage may have expired
	}
	return g.Minter.issue(ctx, reply)
}

// pausedRetry is the Retry-After of an error for a paused application.
const pausedRetry = 5 * time.Minute

// paused returns the error while the user has paused the application (PE-09). Clients discard a
// token after invalid_grant, and try again after this error.
func paused(err error, what string) error {
	e := oauth.NewError(oauth.TemporarilyUnavailable,
		"The person has paused this application. Try again later; the "+what+" stays good.").Because(err)
	e.RetryAfter = pausedRetry
	return e
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

func (g *Refresh) rotateError(ctx context.Context, clientID string, rotation storage.Rotation, err error) error {
	switch {
	case errors.Is(err, storage.ErrSpent):
		g.Minter.Audit.Record(ctx, audit.TokenReuse, slog.String("kind", "refresh_token"),
			slog.String("client_id", clientID), slog.String("grant", rotation.Grant.ID))
		return errRefresh.Because(err)
	case errors.Is(err, storage.ErrResource):
		return errOtherResource.Because(err)
	case errors.Is(err, storage.ErrPaused):
		return paused(err, "refresh token")
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrMismatch), errors.Is(err, storage.ErrExpired),
		errors.Is(err, storage.ErrSuperseded), errors.Is(err, storage.ErrRevoked):
		return errRefresh.Because(err)
	}
	return refusal.Unavailable(err)
}
