package authserver

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/delegation"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Token type identifiers (RFC 8693 §3).
const (
	typeAccessToken = "urn:ietf:params:oauth:token-type:access_token" // #nosec G101 -- a name
	typeJWT         = "urn:ietf:params:oauth:token-type:jwt"          // #nosec G101 -- a name
)

// handleExchange answers a token exchange (RFC 8693) at POST /token: a resource server
// presents the MCP token that it was called with, and gets a token of a provider for the
// same person. The MCP token itself never leaves (SP-06).
func (s *Server) handleExchange(w http.ResponseWriter, r *http.Request, p form.Params) {
	audit.Note(r.Context(), slog.String("grant_type", grantExchange))
	client, err := s.authenticateForm(r, p)
	var x exchange
	if err == nil {
		x, err = s.exchange(r.Context(), client, p)
	}
	if err == nil {
		writeJSON(w, http.StatusOK, x.reply(s.cfg.Now().Unix()))
		return
	}
	e := oauth.AsError(err)
	s.cfg.Audit.Record(r.Context(), audit.TokenRefused, refusal.Attr(err))
	if e.Code == oauth.InteractionRequired {
		noteError(r, e)
		writeJSON(w, e.Status(), interactionBody{errorBody{e.Code, oauth.SafeDescription(e.Description)}, s.connectURL(x.request)})
		return
	}
	s.writeError(w, r, e)
}

// interactionBody tells a resource server where the person can grant what is missing.
type interactionBody struct {
	errorBody
	URI string `json:"interaction_uri"` // ours; good for a quarter of an hour, and for that person only
}

// exchange is what a token exchange has come to: a token, or beside interaction_required
// the request that would lead to one.
type exchange struct {
	token   delegation.Token
	request connectRequest
}

func (x exchange) reply(now int64) oauth.ExchangeResponse {
	out := oauth.ExchangeResponse{
		AccessToken: x.token.Token, IssuedTokenType: typeAccessToken, TokenType: x.token.Type, Scope: x.token.Scopes.String(),
	}
	if !x.token.ExpiresAt.IsZero() {
		out.ExpiresIn = max(1, x.token.ExpiresAt.Unix()-now)
	}
	return out
}

func (s *Server) exchange(ctx context.Context, client storage.Client, p form.Params) (exchange, error) {
	if err := checkExchangeParams(client, p); err != nil {
		return exchange{}, err
	}
	subject, upstreamID, err := s.introspectAccess(ctx, p.Get("subject_token"))
	switch {
	case err != nil:
		return exchange{}, err
	case !subject.Active || !slices.Contains(client.Resources, subject.Audience):
		// Whether somebody else's token is good is nobody's business.
		return exchange{}, errSubject
	case subject.ClientID == client.ID:
		// An MCP client that may also name the resource as a machine is no resource server:
		// tokens of the provider are not for it (RS-202).
		return exchange{}, errSubject
	case subject.GrantID == "":
		return exchange{}, oauth.NewError(oauth.InvalidRequest, "There is no person behind the subject token.")
	}
	if err := s.mayStill(ctx, upstreamID, subject); err != nil {
		return exchange{}, err
	}
	want := delegation.TokenRequest{
		Provider: p.Get("audience"), UserID: subject.Subject, UpstreamID: upstreamID,
		Resource: subject.Audience, Scopes: oauth.ParseScopes(p.Get("scope")),
	}
	audit.Note(ctx, slog.String("connector", form.Cut(want.Provider, 100)), slog.String("user", want.UserID), slog.String("resource", want.Resource),
		slog.String("grant", subject.GrantID))
	token, err := s.cfg.Broker.Token(ctx, want)
	if err != nil {
		return exchange{request: s.newConnect(want, token.Scopes)}, brokerError(err)
	}
	s.cfg.Audit.Record(ctx, audit.TokenExchanged, slog.String("client_id", client.ID), slog.String("user", want.UserID),
		slog.String("resource", want.Resource), slog.String("connector", want.Provider), slog.String("scope", token.Scopes.String()), slog.String("grant", subject.GrantID))
	return exchange{token: token}, nil
}

// mayStill refuses a token with scopes of which policy leaves the person none any more:
// what it says when the token is used counts, as at a refresh (SP-06).
func (s *Server) mayStill(ctx context.Context, upstreamID string, subject oauth.Introspection) error {
	catalog, err := s.catalog.Load(ctx)
	if err != nil {
		return refusal.Unavailable(err)
	}
	resource, ok := catalog.Lookup(subject.Audience)
	if !ok {
		return errSubject // the resource was removed
	}
	_, err = s.bindings.Permit(ctx, upstreamID, resource, oauth.ParseScopes(subject.Scope))
	if errors.Is(err, refusal.ErrNoScopes) || errors.Is(err, storage.ErrRevoked) {
		return errSubject.Because(err)
	}
	return err
}

// errSubject: RFC 8693 §2.2.2 has invalid_request for a token that is no good.
var errSubject = oauth.NewError(oauth.InvalidRequest, "The subject token is not valid, or was not issued for a resource of this client.")

func brokerError(err error) error {
	if errors.Is(err, storage.ErrRevoked) {
		return errSubject.Because(err)
	}
	return refusal.Protocol(err)
}

// checkExchangeParams holds the rules that need nothing but the request.
func checkExchangeParams(client storage.Client, p form.Params) error {
	subjectType, requested := p.Get("subject_token_type"), p.Get("requested_token_type")
	switch {
	case client.Public() || !client.Operated():
		return oauth.NewError(oauth.UnauthorizedClient, "Only a resource server that the operator has registered, with credentials, may exchange tokens.")
	case p.Get("subject_token") == "":
		return oauth.NewError(oauth.InvalidRequest, "The parameter 'subject_token' is missing.")
	case subjectType != typeAccessToken && subjectType != typeJWT:
		return oauth.NewError(oauth.InvalidRequest, "The parameter 'subject_token_type' must name an access token.")
	case requested != "" && requested != typeAccessToken:
		return oauth.NewError(oauth.InvalidRequest, "Only access tokens can be had: leave 'requested_token_type' out.")
	case p.Get("actor_token") != "" || p.Get("actor_token_type") != "":
		return oauth.NewError(oauth.InvalidRequest, "Actor tokens are not supported.")
	case len(p.Resources()) > 0 || p.Get("audience") == "": // missing, or more than one
		return oauth.NewError(oauth.InvalidTarget, "Name one provider in the parameter 'audience', and no resource.")
	}
	return nil
}
