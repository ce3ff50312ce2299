package authserver

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// handleIntrospect serves POST /introspect (RFC 7662, AS-227). The caller is a confidential
// client, usually the one that the operator made for a resource server.
func (s *Server) handleIntrospect(w http.ResponseWriter, r *http.Request) {
	p, err := readForm(r)
	if err != nil {
		s.writeParseError(w, r, err)
		return
	}
	answer, err := s.introspectFor(r, p)
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, answer)
}

func (s *Server) introspectFor(r *http.Request, p form.Params) (oauth.Introspection, error) {
	client, err := s.authenticateForm(r, p)
	if err != nil {
		return oauth.Introspection{}, err
	}
	if client.Public() { // RFC 7662 §2.1: the endpoint must require authorization
		return oauth.Introspection{}, oauth.NewError(oauth.InvalidClient, "Introspection needs a client with credentials.")
	}
	token := p.Get("token")
	if token == "" {
		return oauth.Introspection{}, oauth.NewError(oauth.InvalidRequest, "The parameter 'token' is missing.")
	}
	answer, err := s.introspect(r.Context(), token)
	if err != nil {
		return oauth.Introspection{}, err
	}
	// A refresh token is nobody's business but its client's: a resource server that was
	// told it is active might take it for an access token.
	if answer.Active && !maySee(client, answer) || answer.TokenType == typeRefresh && answer.ClientID != client.ID {
		return oauth.Introspection{}, nil // RFC 7662 §4: not your token, so not active for you
	}
	return answer, nil
}

// typeRefresh is the token_type of a refresh token, so that it cannot pass for a Bearer
// token.
const typeRefresh = "refresh_token"

// maySee reports whether a caller may learn about a token: its own, or one for a
// resource that the operator has assigned to it.
func maySee(c storage.Client, t oauth.Introspection) bool {
	return t.ClientID == c.ID || c.Operated() && slices.Contains(c.Resources, t.Audience)
}

// Introspect reports whether an access token is active, seeing revocation at once.
// It is the in-process form of the introspection endpoint, for a resource server in
// the same program; unlike the endpoint it takes access tokens only. An error means
// that the store, or the provider that the person signed in at, could not be asked.
func (s *Server) Introspect(ctx context.Context, token string) (oauth.Introspection, error) {
	answer, _, err := s.introspectAccess(ctx, token)
	return answer, err
}

// introspectAccess also returns the session at a provider that the token rests on.
func (s *Server) introspectAccess(ctx context.Context, token string) (oauth.Introspection, string, error) {
	claims, ok := s.ownToken(ctx, token)
	if !ok || claims.Expires <= s.cfg.Now().Unix() {
		return oauth.Introspection{}, "", nil
	}
	active, upstreamID, err := s.cfg.Store.TokenActive(ctx, storage.TokenKey{
		TokenID: claims.TokenID, GrantID: claims.GrantID, ClientID: claims.ClientID, Now: s.cfg.Now(),
	})
	if err != nil {
		return oauth.Introspection{}, "", refusal.Unavailable(err)
	}
	if !active {
		return oauth.Introspection{}, "", nil
	}
	if active, err = s.bindings.Stands(ctx, upstreamID); err != nil || !active {
		return oauth.Introspection{}, "", err
	}
	return oauth.Introspection{
		Active: true, Scope: claims.Scope, ClientID: claims.ClientID, TokenType: "Bearer",
		Expires: claims.Expires, IssuedAt: claims.IssuedAt, NotBefore: claims.IssuedAt,
		Subject: claims.Subject, Audience: claims.Audience, Issuer: claims.Issuer,
		TokenID: claims.TokenID, GrantID: claims.GrantID,
	}, upstreamID, nil
}

func (s *Server) introspect(ctx context.Context, token string) (oauth.Introspection, error) {
	answer, err := s.Introspect(ctx, token)
	if err != nil || answer.Active {
		return answer, err
	}
	return s.introspectRefresh(ctx, token)
}

func (s *Server) introspectRefresh(ctx context.Context, token string) (oauth.Introspection, error) {
	presented, err := s.readRefresh(ctx, token)
	if errors.Is(err, storage.ErrNotFound) {
		return oauth.Introspection{}, nil
	}
	if err != nil {
		return oauth.Introspection{}, err
	}
	grant, expires, err := s.cfg.Store.RefreshToken(ctx, presented.token, s.cfg.Now())
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return oauth.Introspection{}, nil
	case err != nil:
		return oauth.Introspection{}, refusal.Unavailable(err)
	}
	if active, err := s.bindings.Stands(ctx, grant.UpstreamID); err != nil || !active {
		return oauth.Introspection{}, err
	}
	return oauth.Introspection{
		Active: true, Scope: grant.Scopes.String(), ClientID: grant.ClientID, TokenType: typeRefresh, Expires: expires.Unix(),
		Subject: grant.UserID, Audience: grant.Resource, Issuer: s.cfg.Issuer, GrantID: grant.ID,
	}, nil
}
