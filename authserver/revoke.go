package authserver

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// handleRevoke serves POST /revoke (RFC 7009, AS-226). An unknown token is a success: the
// client's purpose is achieved (§2.2).
func (s *Server) handleRevoke(w http.ResponseWriter, r *http.Request) {
	p, err := readForm(r)
	if err != nil {
		s.writeParseError(w, r, err)
		return
	}
	client, err := s.authenticateForm(r, p)
	if err == nil {
		err = s.revoke(r.Context(), client, p.Get("token"))
	}
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
}

// authenticateForm authenticates the client of an endpoint that fosite does not serve.
func (s *Server) authenticateForm(r *http.Request, p form.Params) (storage.Client, error) {
	cred, err := readCredentials(r, p)
	if err != nil {
		return storage.Client{}, err
	}
	return s.authenticate(r.Context(), cred)
}

// revoke ends the grant that a token belongs to, whichever kind it is; the hint is
// not needed to tell them apart (RFC 7009 §2.1). Only the client that a token was
// issued to may revoke it.
func (s *Server) revoke(ctx context.Context, client storage.Client, token string) error {
	if token == "" {
		return oauth.NewError(oauth.InvalidRequest, "The parameter 'token' is missing.")
	}
	now := s.cfg.Now()
	if claims, ok := s.ownToken(ctx, token); ok {
		if claims.ClientID != client.ID {
			return errNotOwner
		}
		return s.revokeAccess(ctx, claims, now)
	}
	presented, err := s.readRefresh(ctx, token)
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	grant, err := s.cfg.Store.RevokeRefresh(ctx, presented.token, client.ID, now)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil
	case errors.Is(err, storage.ErrMismatch):
		return errNotOwner.Because(err)
	case err != nil:
		return refusal.Unavailable(err)
	}
	s.cfg.Audit.Record(ctx, audit.TokenRevoked, slog.String("client_id", client.ID), slog.String("kind", "refresh_token"), audit.Grant(grant))
	return nil
}

var errNotOwner = oauth.NewError(oauth.UnauthorizedClient, "The token was issued to another client.")

// revokeAccess ends the whole grant (RFC 7009 §2.1 permits it): the client is
// signing out, and a refresh token left behind would undo that. A machine has no
// grant; its one token is denied.
func (s *Server) revokeAccess(ctx context.Context, claims oauth.AccessTokenClaims, now time.Time) error {
	var err error
	if claims.GrantID != "" {
		err = s.cfg.Store.RevokeGrant(ctx, claims.GrantID, storage.ByClient, now)
	} else {
		err = s.cfg.Store.DenyToken(ctx, claims.TokenID, time.Unix(claims.Expires, 0))
	}
	if err != nil {
		return refusal.Unavailable(err)
	}
	s.cfg.Audit.Record(ctx, audit.TokenRevoked, slog.String("client_id", claims.ClientID),
		slog.String("kind", "access_token"), slog.String("grant", claims.GrantID), slog.String("user", claims.Subject))
	return nil
}

// ownToken reports whether a token is an access token that this server signed, and
// what it says. Expired ones count: they too name a grant to revoke.
func (s *Server) ownToken(ctx context.Context, token string) (oauth.AccessTokenClaims, bool) {
	var claims oauth.AccessTokenClaims
	payload, err := s.keys.Verify(ctx, token, oauth.AccessTokenType)
	if err != nil || json.Unmarshal(payload, &claims) != nil || claims.Issuer != s.cfg.Issuer {
		return oauth.AccessTokenClaims{}, false
	}
	return claims, true
}
