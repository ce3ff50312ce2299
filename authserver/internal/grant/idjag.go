package grant

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/binding"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/keys"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/ways"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// identityAssertionTTL is the lifetime of an ID-JAG. It is redeemed immediately.
const identityAssertionTTL = 5 * time.Minute

// IdentityAssertions exchanges a sign-in for an ID-JAG, an assertion of the user's identity for
// another authorization server (enterprise-managed authorization §4, ID-JAG §4.3; AS-196, AS-244).
type IdentityAssertions struct {
	Issuer   string
	Keys     *keys.Manager
	Refresh  *RefreshTokens
	Store    IdentityStore
	Bindings binding.Checker
	Audit    *audit.Recorder
	Now      func() time.Time
}

// IdentityStore lists the storage methods that IdentityAssertions uses.
type IdentityStore interface {
	storage.Audiences
	TokenActive(ctx context.Context, t storage.TokenKey) (storage.TokenState, error)
	RefreshToken(ctx context.Context, t storage.PresentedRefresh, now time.Time) (storage.Grant, time.Time, error)
	User(ctx context.Context, id string) (storage.User, error)
}

// StaleSignInError is insufficient_user_authentication: the user must sign in again.
type StaleSignInError struct {
	Err    error
	MaxAge time.Duration
}

func (e *StaleSignInError) Error() string { return e.Err.Error() }

// Unwrap returns the *oauth.Error.
func (e *StaleSignInError) Unwrap() error { return e.Err }

// signIn is the live sign-in that a subject token identifies.
type signIn struct {
	grantID, userID, upstreamID string
	authTime                    int64 // 0: unknown
	acr                         string
	amr                         []string
}

// asked implements ExchangeKind.
func (*IdentityAssertions) asked(r ExchangeRequest) bool {
	return r.RequestedType == oauth.TokenTypeIDJAG
}

// reply implements ExchangeKind. Its error is a *StaleSignInError or another *oauth.Error.
func (g *IdentityAssertions) reply(
	ctx context.Context, client storage.Client, r ExchangeRequest,
) (none oauth.ExchangeResponse, err error) {
	if err := g.check(client, r); err != nil {
		return none, err
	}
	to, there, err := g.audience(ctx, client, r)
	if err != nil {
		return none, err
	}
	who, err := g.signIn(ctx, client, r)
	if err != nil {
		return none, err
	}
	request.Of(ctx).Note(slog.String("user", who.userID), slog.String("grant", who.grantID))
	now := g.Now()
	if age := time.Duration(to.MaxAge); age > 0 && now.Sub(time.Unix(who.authTime, 0)) > age {
		return none, &StaleSignInError{MaxAge: age, Err: oauth.NewError(oauth.InsufficientAuthentication,
			"The person has to sign in again for this audience.")}
	}
	scopes, err := g.scopes(ctx, to, there.resources, r.Scopes, who)
	if err != nil {
		return none, err
	}
	claims := oauth.IdentityAssertionClaims{
		Issuer:   g.Issuer,
		Subject:  who.userID,
		Audience: to.Issuer,
		ClientID: there.clientID,
		TokenID:  secrets.Token(""),
		Expires:  now.Add(identityAssertionTTL).Unix(),
		IssuedAt: now.Unix(),
		Resource: oneOrAll(there.resources),
		Scope:    scopes.String(),
		AuthTime: who.authTime,
		ACR:      who.acr,
		AMR:      who.amr,

		Confirmation: r.Proof.Confirmation(), // AS-194
	}
	if claims.Email, err = g.mail(ctx, to, who); err != nil {
		return none, err
	}
	token, err := g.Keys.Sign(ctx, oauth.IdentityAssertionType, claims)
	if err != nil {
		return none, err
	}
	g.Audit.Record(ctx, audit.IdentityAsserted, slog.String("client_id", client.ID), slog.String("user", who.userID),
		slog.String("audience", to.Issuer), slog.Any("resources", there.resources),
		slog.String("scope", scopes.String()), slog.String("grant", who.grantID))
	return oauth.ExchangeResponse{
		AccessToken:     token,
		IssuedTokenType: oauth.TokenTypeIDJAG,
		TokenType:       "N_A", // RFC 8693 §2.2.1: not an access token
		ExpiresIn:       int64(identityAssertionTTL / time.Second),
		Scope:           scopes.String(),
	}, nil
}

// offered reports whether an audience is registered.
func (g *IdentityAssertions) offered(ctx context.Context) (bool, error) {
	audiences, err := g.Store.ListAudiences(ctx)
	return len(audiences) > 0, err
}

// check checks the rules that need only the request.
func (g *IdentityAssertions) check(client storage.Client, r ExchangeRequest) error {
	switch {
	case !g.asked(r): // no other kind is offered
		return ErrUnsupported
	case !client.SignsIn():
		return oauth.NewError(oauth.UnauthorizedClient,
			"Only a client that the operator has registered with the scope openid, and credentials, gets assertions.")
	case r.SubjectToken == "":
		return oauth.NewError(oauth.InvalidRequest, "The parameter 'subject_token' is missing.")
	case r.SubjectTokenType != oauth.TokenTypeID && r.SubjectTokenType != oauth.TokenTypeRefresh:
		return oauth.NewError(oauth.InvalidRequest,
			"The parameter 'subject_token_type' must name an ID token or a refresh token.")
	case r.ActorToken != "" || r.ActorTokenType != "":
		return oauth.NewError(oauth.InvalidRequest, "Actor tokens are not supported.")
	case r.HelperKey != "":
		return errHelperKey
	}
	return nil
}

// target is the client that redeems an assertion, and its resources.
type target struct {
	clientID  string // of the client at the audience
	resources []string
}

var errAudience = oauth.NewError(oauth.InvalidTarget,
	"Assertions for this audience, or for this resource there, are not for this client.")

// audience returns the operator's entry for the audience of the request. A client without an entry
// does not learn which audiences exist.
func (g *IdentityAssertions) audience(
	ctx context.Context, client storage.Client, r ExchangeRequest,
) (a storage.Audience, to target, err error) {
	request.Of(ctx).Note(slog.String("audience", form.Cut(r.Audience, 512)))
	all, err := g.Store.ListAudiences(ctx)
	if err != nil {
		return a, to, refusal.Unavailable(err)
	}
	i := slices.IndexFunc(all, func(a storage.Audience) bool { return a.Issuer == r.Audience })
	if i < 0 || r.Audience == g.Issuer {
		return a, to, errAudience
	}
	a = all[i]
	mapped, ok := a.Client(client.ID)
	if !ok {
		return a, to, errAudience
	}
	to.clientID = mapped.There
	for _, raw := range r.Resources {
		uri, err := oauth.CanonicalResource(raw)
		if err != nil || !slices.Contains(a.Resources, uri) {
			return a, to, errAudience
		}
		if !slices.Contains(to.resources, uri) {
			to.resources = append(to.resources, uri)
		}
	}
	if len(to.resources) == 0 {
		if to.resources = a.Resources; len(a.Resources) != 1 {
			return a, to, oauth.NewError(oauth.InvalidTarget, "Name a resource of this audience.")
		}
	}
	return a, to, nil
}

var errSignIn = oauth.NewError(oauth.InvalidGrant,
	"The subject token is not valid for this client, or the sign-in behind it has ended.")

// signIn returns the sign-in of a subject token, which must be issued to the client. The grant must
// not have ended, the user must not be disabled, and the provider session that the sign-in depends
// on must be live.
func (g *IdentityAssertions) signIn(ctx context.Context, client storage.Client, r ExchangeRequest) (signIn, error) {
	read := g.ofIDToken
	if r.SubjectTokenType == oauth.TokenTypeRefresh {
		read = g.ofRefreshToken
	}
	who, err := read(ctx, client, r)
	if err != nil {
		return who, err
	}
	state, err := g.Store.TokenActive(ctx, storage.TokenKey{GrantID: who.grantID, ClientID: client.ID, Now: g.Now()})
	switch {
	case err != nil:
		return who, refusal.Unavailable(err)
	case !state.Active:
		return who, errSignIn
	}
	who.upstreamID = state.UpstreamID
	err = g.Bindings.Check(ctx, who.upstreamID, refreshMaxAge)
	if errors.Is(err, storage.ErrRevoked) {
		return who, errSignIn.Because(err)
	}
	return who, err
}

func (g *IdentityAssertions) ofIDToken(ctx context.Context, client storage.Client, r ExchangeRequest) (signIn, error) {
	var claims oauth.IDTokenClaims
	payload, err := g.Keys.Verify(ctx, r.SubjectToken, oauth.IDTokenType)
	switch {
	case errors.Is(err, keys.ErrVerify):
		return signIn{}, errSignIn.Because(err)
	case err != nil:
		return signIn{}, refusal.Unavailable(err)
	case json.Unmarshal(payload, &claims) != nil || claims.Issuer != g.Issuer || claims.Audience != client.ID ||
		claims.Expires <= g.Now().Unix() || claims.TokenID == "":
		return signIn{}, errSignIn
	}
	return signIn{
		grantID: claims.TokenID, userID: claims.Subject, authTime: claims.AuthTime, acr: claims.ACR, amr: claims.AMR,
	}, nil
}

func (g *IdentityAssertions) ofRefreshToken(
	ctx context.Context, client storage.Client, r ExchangeRequest,
) (signIn, error) {
	presented, err := g.Refresh.read(ctx, r.SubjectToken)
	if errors.Is(err, refusal.ErrUnknownToken) {
		return signIn{}, errSignIn.Because(err)
	}
	if err == nil {
		err = presented.heldBy(r.Proof) // a thief has only the token (AS-241)
	}
	if err != nil {
		return signIn{}, err
	}
	found, _, err := g.Store.RefreshToken(ctx, presented.token, g.Now())
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return signIn{}, errSignIn.Because(err)
	case err != nil:
		return signIn{}, refusal.Unavailable(err)
	case found.ClientID != client.ID || found.Resource != IdentityResource(g.Issuer).URI:
		return signIn{}, errSignIn
	}
	who := signIn{
		grantID: found.ID, userID: found.UserID, acr: ways.ACR(found.Methods), amr: ways.AMR(found.Methods),
	}
	if !found.AuthTime.IsZero() {
		who.authTime = found.AuthTime.Unix()
	}
	return who, nil
}

var errNoScopes = oauth.NewError(oauth.AccessDenied, "The person may have none of these scopes there.").
	Because(refusal.ErrNoScopes)

// scopes returns the scopes to assert: the requested scopes in the operator's entry that the
// provider's rules allow the user for each resource.
func (g *IdentityAssertions) scopes(
	ctx context.Context, to storage.Audience, resources []string, asked oauth.Scopes, who signIn,
) (oauth.Scopes, error) {
	scopes := to.Scopes
	if asked = asked.Without(oauth.Scopes{oauth.OfflineAccess}); len(asked) > 0 {
		if scopes = asked.Intersect(to.Scopes); len(scopes) == 0 {
			return nil, oauth.NewError(oauth.InvalidScope, "None of these scopes is asserted to this audience.")
		}
	}
	person := binding.Person{UserID: who.userID, UpstreamID: who.upstreamID}
	for _, uri := range resources {
		permitted, err := g.Bindings.Permit(ctx, person, storage.Resource{URI: uri}, scopes)
		switch {
		case errors.Is(err, storage.ErrRevoked):
			return nil, errSignIn.Because(err)
		case errors.Is(err, refusal.ErrNoScopes):
			return nil, errNoScopes
		case err != nil:
			return nil, err
		}
		scopes = scopes.Intersect(permitted)
	}
	if len(scopes) == 0 {
		return nil, errNoScopes
	}
	return scopes, nil
}

// mail returns the user's mail address, for audiences that receive it.
func (g *IdentityAssertions) mail(ctx context.Context, to storage.Audience, who signIn) (string, error) {
	if !to.Mail {
		return "", nil
	}
	u, err := g.Store.User(ctx, who.userID)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return "", errSignIn.Because(err)
	case err != nil:
		return "", refusal.Unavailable(err)
	}
	return u.Mail, nil
}

// oneOrAll returns a list in the form of claims: a single member without a list.
func oneOrAll(list []string) any {
	if len(list) == 1 {
		return list[0]
	}
	return list
}
