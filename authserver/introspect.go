package authserver

import (
	"context"
	"net/http"

	"github.com/mcp-authd/mcp-authd/internal/wire"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// handleIntrospect serves POST /introspect (RFC 7662, AS-227). The caller is a confidential client,
// usually created by the operator for a resource server.
func (s *Server) handleIntrospect(w http.ResponseWriter, r *http.Request) {
	p, err := readForm(r)
	if err != nil {
		s.writeParseError(w, r, err)
		return
	}
	client, err := s.grants.clientAuth.Authenticate(r.Context(), credentials(r, p))
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	answer, err := s.grants.tokens.IntrospectFor(r.Context(), client, p.Get("token"))
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	wire.WriteJSON(w, http.StatusOK, answer)
}

// Introspect reports whether an access token is active; revocation takes effect immediately. It is
// the in-process form of the introspection endpoint, for a resource server in the same process.
// Unlike the endpoint it accepts only access tokens. It returns an error if the store, or the
// user's provider, could not be asked.
func (s *Server) Introspect(ctx context.Context, token string) (oauth.Introspection, error) {
	return s.grants.tokens.Introspect(ctx, token)
}

// Revoked reports whether an access token has been revoked or paused since Introspect returned of
// for it. Unlike Introspect it also works for expired tokens: see mcpresource.Limits.Overtime.
func (s *Server) Revoked(ctx context.Context, of oauth.Introspection) (bool, error) {
	return s.grants.tokens.Revoked(ctx, of)
}
