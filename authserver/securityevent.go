package authserver

import (
	"context"
	"fmt"

	"github.com/mcp-authd/mcp-authd/internal/secevent"
)

// SignSecurityEvent signs claims as a security event token (RFC 8417) of this issuer, with the key
// for access tokens. The typ header distinguishes the two.
func (s *Server) SignSecurityEvent(ctx context.Context, claims any) (string, error) {
	token, err := s.keys.Sign(ctx, secevent.Type, claims)
	if err != nil {
		return "", fmt.Errorf("authserver: %w", err)
	}
	return token, nil
}
