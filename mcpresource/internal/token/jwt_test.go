package token

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestKeysOutOfReach: mutation hole 18. An unavailable key set does not end streams as revoked.
func TestKeysOutOfReach(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	v, err := NewJWTValidator(JWTConfig{Issuer: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.(*jwtValidator).published(t.Context(), signer{kid: "ES256", print: "x"}); err == nil ||
		errors.Is(err, ErrInvalidToken) || !Outage(err) {
		t.Errorf("RS-45: got %v", err)
	}
}
