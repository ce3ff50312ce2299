package grant

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/binding"
	"github.com/mcp-authd/mcp-authd/authserver/internal/catalogue"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/dpop"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Helpers exchanges a token for one with fewer scopes (RFC 8693 §4.1, AS-243). A client trades an
// access token of its own grant for a token for a sub-agent. The new token has some of the scopes,
// the same user and resource, and no longer lifetime. It names the sub-agent as its actor, and is a
// node below the grant that can be revoked separately. It gives nothing that the client could not
// do by itself, so every client may use it.
type Helpers struct {
	Tokens   *Tokens
	Store    HelperStore
	Catalog  *catalogue.Catalogue
	Bindings binding.Checker
	Minter   *Minter
}

// HelperStore lists the storage methods that Helpers uses.
type HelperStore interface {
	Grant(ctx context.Context, id string) (storage.Grant, error)
	storage.Nodes
}

// unnamedHelper is the default actor name.
const unnamedHelper = "helper"

// actorName matches the valid names of a sub-agent, which fit into headers and logs unchanged.
var actorName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,63}$`)

// errOwnSubject refuses an invalid subject token. RFC 8693 §2.2.2 requires invalid_request.
var errOwnSubject = oauth.NewError(oauth.InvalidRequest,
	"The subject token is not valid, or was not issued to this client. A provider is named in the parameter 'audience'.")

// offered implements ExchangeKind.
func (*Helpers) offered(context.Context) (bool, error) { return true, nil }

// asked implements ExchangeKind: the request has no audience, or a resource.
func (*Helpers) asked(r ExchangeRequest) bool { return !r.forProvider() }

// reply implements ExchangeKind.
func (g *Helpers) reply(
	ctx context.Context, client storage.Client, r ExchangeRequest,
) (oauth.ExchangeResponse, error) {
	lifetime, err := checkHelper(r)
	if err != nil {
		return oauth.ExchangeResponse{}, err
	}
	claims, grant, err := g.subject(ctx, client, r)
	if err != nil {
		return oauth.ExchangeResponse{}, err
	}
	now := g.Minter.Now()
	scopes, until, err := g.scopes(ctx, claims, grant, r.Scopes, now)
	if err != nil {
		return oauth.ExchangeResponse{}, err
	}
	node := storage.Node{
		ID:        secrets.ID("nod_"),
		GrantID:   grant.ID,
		ParentID:  claims.NodeID,
		Name:      cmp.Or(r.Actor, unnamedHelper),
		Scopes:    scopes,
		CreatedAt: now,
		ExpiresAt: g.end(claims, grant, until, lifetime, now),
	}
	if node, err = g.Store.AddNode(ctx, node); err != nil {
		return oauth.ExchangeResponse{}, nodeError(err)
	}
	grant.StatusIndex = node.StatusIndex
	reply, err := g.Minter.issue(ctx, issuance{
		grant:    grant,
		scopes:   scopes,
		until:    node.ExpiresAt,
		issuedAt: now,
		event:    audit.HelperAdded,
		proof:    r.boundTo(),
		node:     node,
		act:      &oauth.Actor{Subject: node.Name, NodeID: node.ID, Act: claims.Act},
	})
	if err != nil {
		return oauth.ExchangeResponse{}, err
	}
	return oauth.ExchangeResponse{
		AccessToken:     reply.AccessToken,
		IssuedTokenType: oauth.TokenTypeAccess,
		TokenType:       reply.TokenType,
		ExpiresIn:       reply.ExpiresIn,
		Scope:           reply.Scope,
	}, nil
}

// boundTo returns the key that the sub-agent's token is bound to: the sub-agent's key if the client
// names it, else the client's. A client that names another party's key gets a token that only that
// party can use.
func (r ExchangeRequest) boundTo() Proof {
	if r.HelperKey != "" {
		return Proof{Thumbprint: r.HelperKey}
	}
	return r.Proof
}

// checkHelper checks the rules that need only the request, and returns the requested lifetime, or
// zero.
func checkHelper(r ExchangeRequest) (lifetime time.Duration, err error) {
	switch {
	case r.SubjectToken == "":
		return 0, oauth.NewError(oauth.InvalidRequest, "The parameter 'subject_token' is missing.")
	case r.SubjectTokenType != oauth.TokenTypeAccess && r.SubjectTokenType != oauth.TokenTypeJWT:
		return 0, oauth.NewError(oauth.InvalidRequest, "The parameter 'subject_token_type' must name an access token.")
	case r.RequestedType != "" && r.RequestedType != oauth.TokenTypeAccess:
		return 0, oauth.NewError(oauth.InvalidRequest,
			"Only access tokens are issued here: leave 'requested_token_type' out.")
	case r.ActorToken != "" || r.ActorTokenType != "":
		return 0, oauth.NewError(oauth.InvalidRequest,
			"Actor tokens are not supported: name the helper in the parameter 'actor'.")
	case r.Actor != "" && !actorName.MatchString(r.Actor):
		return 0, oauth.NewError(oauth.InvalidRequest,
			"The parameter 'actor' must be a name of up to 64 letters, digits and . _ : / @ + - signs.")
	case r.HelperKey != "" && !dpop.IsThumbprint(r.HelperKey):
		return 0, sentence.NewError(oauth.InvalidRequest, "The parameter 'dpop_jkt' is not the thumbprint of a key.", "key_malformed")
	case r.ExpiresIn == "":
		return 0, nil
	}
	seconds, err := strconv.ParseUint(r.ExpiresIn, 10, 31)
	if err != nil || seconds == 0 {
		return 0, oauth.NewError(oauth.InvalidRequest, "The parameter 'expires_in' must be a number of seconds.")
	}
	return time.Duration(seconds) * time.Second, nil
}

// subject reads the subject token and its grant. The token must be the client's own, for the
// resource that the request names. AddNode checks whether it was revoked.
func (g *Helpers) subject(
	ctx context.Context, client storage.Client, r ExchangeRequest,
) (claims oauth.AccessTokenClaims, grant storage.Grant, err error) {
	claims, err = g.Tokens.Own(ctx, r.SubjectToken)
	switch {
	case err != nil && !errors.Is(err, refusal.ErrUnknownToken):
		return claims, grant, err
	case err != nil || claims.Expires <= g.Minter.Now().Unix() || claims.ClientID != client.ID:
		return claims, grant, errOwnSubject
	case claims.Confirmation != nil && claims.Confirmation.Thumbprint != r.Proof.Thumbprint:
		// Otherwise a thief could exchange a bound token for a usable one.
		return claims, grant, errSubjectProof
	case claims.GrantID == "":
		// A machine can request any number of tokens, with the scopes that it wants.
		return claims, grant, oauth.NewError(oauth.InvalidRequest,
			"There is no grant behind the subject token: ask for a token with fewer scopes instead.")
	case len(claims.Act.Chain()) >= oauth.MaxActors:
		return claims, grant, nodeError(storage.ErrDeep)
	}
	named := r.Resources
	if r.Audience != "" {
		named = append(named[:len(named):len(named)], r.Audience)
	}
	for _, resource := range named {
		canonical, err := g.Catalog.Named(ctx, []string{resource})
		if err != nil {
			return claims, grant, err
		}
		if canonical != claims.Audience {
			return claims, grant, errOtherResource
		}
	}
	if err := g.Minter.Demand(ctx, claims.Audience, r.Proof); err != nil {
		return claims, grant, err
	}
	grant, err = g.Store.Grant(ctx, claims.GrantID)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return claims, grant, errOwnSubject.Because(err)
	case err != nil:
		return claims, grant, refusal.Unavailable(err)
	case grant.ClientID != claims.ClientID || grant.Resource != claims.Audience:
		return claims, grant, errOwnSubject
	}
	request.Of(ctx).Note(audit.Grant(grant))
	switch err := g.Bindings.Check(ctx, grant.UpstreamID, refreshMaxAge); {
	case errors.Is(err, storage.ErrRevoked):
		return claims, grant, errOwnSubject.Because(err)
	default:
		return claims, grant, err
	}
}

// scopes returns the requested scopes, if the subject token has them and the user may still have
// them, as at a refresh.
func (g *Helpers) scopes(
	ctx context.Context, claims oauth.AccessTokenClaims, grant storage.Grant, requested oauth.Scopes, now time.Time,
) (scopes oauth.Scopes, until time.Time, err error) {
	resource, known, err := g.Catalog.Lookup(ctx, grant.Resource)
	if err != nil {
		return nil, until, err
	}
	if !known {
		return nil, until, errOwnSubject
	}
	held := scopesLeft(claims, grant.Scopes, resource)
	if scopes, err = policy.Lessened(resource, held, requested); err != nil {
		return nil, until, err
	}
	scopes, err = g.Bindings.Permit(ctx, binding.Of(grant), resource, scopes)
	if errors.Is(err, refusal.ErrNoScopes) || errors.Is(err, storage.ErrRevoked) {
		return nil, until, errOwnSubject.Because(err)
	}
	if err != nil {
		return nil, until, err
	}
	if scopes, until, err = proved(ctx, grant, resource, scopes, now); err != nil {
		return nil, until, errOwnSubject.Because(err)
	}
	return scopes, until, nil
}

// end returns the end of a node, which is never after the subject token's.
func (g *Helpers) end(
	claims oauth.AccessTokenClaims, grant storage.Grant, until time.Time, lifetime time.Duration, now time.Time,
) time.Time {
	end := now.Add(g.Minter.TTL)
	for _, t := range []time.Time{time.Unix(claims.Expires, 0), grant.ExpiresAt, until} {
		if !t.IsZero() && t.Before(end) {
			end = t
		}
	}
	if lifetime > 0 && now.Add(lifetime).Before(end) {
		end = now.Add(lifetime)
	}
	return end.Truncate(time.Second) // the precision of tokens
}

// nodeError returns the token endpoint error for a store's error about a node.
func nodeError(err error) error {
	switch {
	case errors.Is(err, storage.ErrPaused):
		return paused(err, "grant")
	case errors.Is(err, storage.ErrDeep):
		return oauth.NewError(oauth.InvalidRequest,
			"The subject token is that of a helper which may have no helpers of its own.").Because(err)
	case errors.Is(err, storage.ErrFull):
		return oauth.NewError(oauth.InvalidRequest,
			"This grant has as many helpers as it may have. There is room when the token of one has expired.").Because(err)
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrRevoked), errors.Is(err, storage.ErrExpired):
		return errOwnSubject.Because(err)
	}
	return refusal.Unavailable(err)
}

// names returns the actors of a chain for the log, current actor first.
func names(act *oauth.Actor) string {
	var out []string
	for _, a := range act.Chain() {
		out = append(out, a.Subject)
	}
	return strings.Join(out, " ")
}
