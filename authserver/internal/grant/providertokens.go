package grant

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/binding"
	"github.com/mcp-authd/mcp-authd/authserver/internal/catalogue"
	"github.com/mcp-authd/mcp-authd/authserver/internal/connect"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// ProviderTokens exchanges an MCP token for a provider's token: a resource server presents the MCP
// token that it was called with, and gets a provider's token for the same user. The MCP token never
// leaves the server (SP-06).
type ProviderTokens struct {
	Tokens   *Tokens
	Catalog  *catalogue.Catalogue
	Bindings binding.Checker
	Broker   Broker
	Links    *connect.Links
	Audit    *audit.Recorder
	Now      func() time.Time
}

// Broker returns provider tokens for resource servers. authserver.Broker documents the contract.
type Broker interface {
	Token(ctx context.Context, r delegation.TokenRequest) (delegation.Token, error)
}

// InteractionError is interaction_required: the user must first grant something at the provider.
// URL is the page for that.
type InteractionError struct {
	Err error
	URL string // valid for 15 minutes, and only for that user
}

func (e *InteractionError) Error() string { return e.Err.Error() }

// Unwrap returns the *oauth.Error.
func (e *InteractionError) Unwrap() error { return e.Err }

// offered implements ExchangeKind.
func (*ProviderTokens) offered(context.Context) (bool, error) { return true, nil }

// asked implements ExchangeKind: the audience is a provider.
func (*ProviderTokens) asked(r ExchangeRequest) bool { return r.forProvider() }

// reply implements ExchangeKind: it returns a provider's token for the user of the subject token.
// Its error is an *InteractionError or another *oauth.Error.
func (g *ProviderTokens) reply(
	ctx context.Context, client storage.Client, r ExchangeRequest,
) (oauth.ExchangeResponse, error) {
	if err := checkProviderTokens(client, r); err != nil {
		return oauth.ExchangeResponse{}, err
	}
	subject, err := g.subject(ctx, client, r.SubjectToken)
	if err != nil {
		return oauth.ExchangeResponse{}, err
	}
	want := delegation.TokenRequest{
		Provider:   r.Audience,
		UserID:     subject.Subject,
		UpstreamID: subject.upstreamID,
		Resource:   subject.resource.Server(),
		Scopes:     r.Scopes,
	}
	request.Of(ctx).Note(slog.String("connector", form.Cut(want.Provider, 100)), slog.String("user", want.UserID),
		slog.String("resource", want.Resource), slog.String("grant", subject.GrantID))
	token, err := g.Broker.Token(ctx, want)
	if err != nil {
		return oauth.ExchangeResponse{}, g.brokerError(err, want, token.Scopes)
	}
	g.Audit.Record(ctx, audit.TokenExchanged, slog.String("client_id", client.ID), slog.String("user", want.UserID),
		slog.String("resource", want.Resource), slog.String("connector", want.Provider),
		slog.String("scope", token.Scopes.String()), slog.String("grant", subject.GrantID))
	return exchanged(token, g.Now()), nil
}

// checkProviderTokens checks the rules that need only the request.
func checkProviderTokens(client storage.Client, r ExchangeRequest) error {
	switch {
	case client.Public() || !client.Operated():
		return oauth.NewError(oauth.UnauthorizedClient,
			"Only a resource server that the operator has registered, with credentials, may exchange tokens.")
	case r.SubjectToken == "":
		return oauth.NewError(oauth.InvalidRequest, "The parameter 'subject_token' is missing.")
	case r.SubjectTokenType != oauth.TokenTypeAccess && r.SubjectTokenType != oauth.TokenTypeJWT:
		return oauth.NewError(oauth.InvalidRequest, "The parameter 'subject_token_type' must name an access token.")
	case r.RequestedType != "" && r.RequestedType != oauth.TokenTypeAccess:
		return oauth.NewError(oauth.InvalidRequest, "Only access tokens are issued here: leave 'requested_token_type' out.")
	case r.ActorToken != "" || r.ActorTokenType != "":
		return oauth.NewError(oauth.InvalidRequest, "Actor tokens are not supported.")
	case r.HelperKey != "":
		return errHelperKey
	case len(r.Resources) > 0 || r.Audience == "" || strings.Contains(r.Audience, " "): // missing or several
		return oauth.NewError(oauth.InvalidTarget, "Name one provider in the parameter 'audience', and no resource.")
	}
	return nil
}

// errSubject refuses an invalid subject token. RFC 8693 §2.2.2 requires invalid_request.
var errSubject = oauth.NewError(oauth.InvalidRequest,
	"The subject token is not valid, or was not issued for a resource of this client.")

// subject is the content of a subject token.
type subject struct {
	oauth.Introspection
	resource   storage.Resource // the token's resource
	upstreamID string           // the provider session that the token depends on
}

// subject reads a subject token that the client may present.
func (g *ProviderTokens) subject(ctx context.Context, client storage.Client, token string) (s subject, err error) {
	if s.Introspection, s.upstreamID, err = g.Tokens.access(ctx, token); err != nil {
		return s, err
	}
	known := false // and not removed
	if s.resource, known, err = g.Catalog.Lookup(ctx, s.Audience); err != nil {
		return s, err
	}
	switch {
	case !s.Active || !known || !serves(client, s.resource):
		// A client must not learn whether another user's token is valid.
		return s, errSubject
	case s.ClientID == client.ID:
		// An MCP client that may also use the resource as a machine does not count as a resource
		// server. It must not get provider tokens (RS-202).
		return s, errSubject
	case s.GrantID == "":
		return s, oauth.NewError(oauth.InvalidRequest, "The subject token belongs to no user.")
	}
	return s, g.mayStill(ctx, s)
}

// mayStill refuses a token if policy no longer allows the user any of its scopes. The policy at the
// time of use counts, as at a refresh (SP-06).
func (g *ProviderTokens) mayStill(ctx context.Context, s subject) error {
	who := binding.Person{UserID: s.Subject, UpstreamID: s.upstreamID}
	_, err := g.Bindings.Permit(ctx, who, s.resource, oauth.ParseScopes(s.Scope))
	if errors.Is(err, refusal.ErrNoScopes) || errors.Is(err, storage.ErrRevoked) {
		return errSubject.Because(err)
	}
	return err
}

func (g *ProviderTokens) brokerError(err error, want delegation.TokenRequest, missing oauth.Scopes) error {
	if errors.Is(err, storage.ErrRevoked) {
		return errSubject.Because(err)
	}
	err = refusal.Protocol(err)
	if oauth.AsError(err).Code == oauth.InteractionRequired {
		return &InteractionError{Err: err, URL: g.Links.URL(g.Links.For(want, missing))}
	}
	return err
}

func exchanged(t delegation.Token, now time.Time) oauth.ExchangeResponse {
	out := oauth.ExchangeResponse{
		AccessToken:     t.Token,
		IssuedTokenType: oauth.TokenTypeAccess,
		TokenType:       t.Type,
		Scope:           t.Scopes.String(),
	}
	if !t.ExpiresAt.IsZero() {
		out.ExpiresIn = max(1, t.ExpiresAt.Unix()-now.Unix())
	}
	return out
}
