package grant

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/binding"
	"github.com/mcp-authd/mcp-authd/authserver/internal/catalogue"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/policy"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Refresh rotates refresh tokens (OAuth 2.1 §4.3). A refresh token is spent by
// its first use. Clients that refresh in parallel, or lose the reply and try again,
// get the very same reply within the grace window: the successor is made again from the
// spent token and the time of its rotation, and the access token is minted again from the
// same inputs with a deterministic signature. For a token whose successor was not used, the time in which
// the store was away does not count. After the window, a second use means that two parties hold the token, and
// the whole grant is revoked.
type Refresh struct {
	Store    RefreshStore
	Catalog  *catalogue.Catalogue
	Bindings binding.Checker
	Tokens   *RefreshTokens
	Minter   *Minter
	Grace    time.Duration
	Outages  *Outages // in which Grace does not run
}

// RefreshStore is what Refresh needs of the store.
type RefreshStore interface {
	storage.Redemptions
	storage.Lookups
	// User is that of storage.Users.
	User(ctx context.Context, id string) (storage.User, error)
}

var errRefresh = oauth.NewError(oauth.InvalidGrant,
	"The refresh token is not valid: it is unknown, expired, used or revoked.")

// Type returns the grant type.
func (*Refresh) Type() string { return oauth.GrantRefresh }

// Reply rotates the token, in one storage call. Only a request
// that names scopes, or may rest on a session at a provider, or lack a proof, costs a read
// before it, so that asking for too much, or at the wrong time, does not spend the token.
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
		return nil, err // before anything is spent (AS-241)
	}
	before, err := g.precheck(ctx, presented.token, client.ID, resource, r)
	if err != nil {
		return nil, err
	}
	return g.rotate(ctx, client.ID, presented, resource, r, before)
}

// refreshMaxAge is how old a provider's last word may be when tokens are refreshed
// (AS-218). Parallel refreshes share one answer.
const refreshMaxAge = 10 * time.Second

// scoping is which scopes a refresh comes to.
type scoping struct {
	requested oauth.Scopes
	scopes    oauth.Scopes // as far as they are known before the token is spent
	until     time.Time    // how long the proof of the person allows them; zero: as long as the grant lives
	known     bool
}

// precheck refuses, before anything is spent, a request for scopes beyond the grant, one whose
// session at a provider has ended or cannot be asked about, and one that lacks the proof that its
// resource demands, which it may not name ("").
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
		return s, nil // spent, expired or unknown: rotate knows which
	case err != nil:
		return s, refusal.Unavailable(err)
	case grant.ClientID != clientID:
		return s, nil
	}
	audit.Note(ctx, audit.Grant(grant))
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
		// Many clients name what they were granted at first each time. They keep what is left.
		requested = requested.Intersect(grant.Scopes)
	}
	scopes, err := policy.Narrow(grant.Scopes, requested, policy.ResourceScopes(resource))
	if err != nil {
		return s, err
	}
	// Nothing left means that the person has to ask again, and is told why there.
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

// administers refuses a person who has lost their role: the administration of this server is for those who
// have one (OB-10).
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
	audit.Note(ctx, audit.Grant(rotation.Grant))
	if err != nil {
		return nil, g.rotateError(ctx, clientID, rotation, err)
	}
	// What was not looked at before is looked at now. It is a replay, or the store had lost
	// the token: then the client may ask again within the grace window. Or the request names
	// no scopes and rests on no provider, and fails only if the resource or all scopes of the
	// grant are not served any more, so that no token would be of use.
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

// pausedRetry is after how long a client should ask again whether a pause is over.
const pausedRetry = 5 * time.Minute

// paused is the answer while the person has paused the application (PE-09). Clients throw a token
// away at invalid_grant, and try again after this one.
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
