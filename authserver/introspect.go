package authserver

import (
	"context"
	"net/http"

	"github.com/mcp-authd/mcp-authd/internal/wire"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// handleIntrospect serves POST /introspect (RFC 7662, AS-227). The caller is a confidential
// client, usually the one that the operator made for a resource server.
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

// Introspect reports whether an access token is active, seeing revocation at once.
// It is the in-process form of the introspection endpoint, for a resource server in
// the same program; unlike the endpoint it takes access tokens only. An error means
// that the store, or the provider that the person signed in at, could not be asked.
func (s *Server) Introspect(ctx context.Context, token string) (oauth.Introspection, error) {
	return s.grants.tokens.Introspect(ctx, token)
}

// Revoked reports whether an access token that was active, as Introspect has said in of, has been revoked or paused
// since. Unlike Introspect it knows this of expired tokens too: see mcpresource.Limits.Overtime.
func (s *Server) Revoked(ctx context.Context, of oauth.Introspection) (bool, error) {
	return s.grants.tokens.Revoked(ctx, of)
}
